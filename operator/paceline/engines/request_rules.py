"""Rules about workloads whose requests an arm's servers answer otherwise than they ask, or not at all.

Without them a run would find it out round by round: as answers without the form that they should have, or as requests
that fail.
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
    """For each dataset at most one: of the first arm that refuses it."""
    refused: set[str] = set()
    for load in workloads:
        for found in (found for arm in arms for found in adapter.refuses(arm, load)):
            if load.dataset.name not in refused:
                refused.add(load.dataset.name)
                yield load, replace(found, rule=RULE)
