"""Rules about workloads whose requests an arm's servers refuse, or answer in another form.

Without them a run would notice round by round, through failed requests or answers of the wrong form.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from paceline.core import Arm, Workload
from paceline.engines.adapter import Adapter
from paceline.engines.refusal import Refusal

RULE = "requests-answered"


def refusals(
    adapter: Adapter, arms: Sequence[Arm], workloads: Sequence[Workload]
) -> Iterator[tuple[Workload, Refusal]]:
    """At most one refusal per dataset, for the first arm that refuses the dataset's requests."""
    refused: set[str] = set()
    for load in workloads:
        for found in (found for arm in arms for found in adapter.refuses(arm, load)):
            if load.dataset.name not in refused:
                refused.add(load.dataset.name)
                yield load, replace(found, rule=RULE)
