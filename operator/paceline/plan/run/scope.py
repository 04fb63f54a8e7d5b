"""What a verdict holds for: how its requests were sampled, and whether it is of the prompts of a set alone."""

from collections.abc import Iterable

from paceline.api.run_status import Round
from paceline.core import RunSpec, Workload
from paceline.engines import ENGINES
from paceline.evidence import of_these_prompts


def scope(spec: RunSpec, rounds: Iterable[Round]) -> str:
    """For the end of a verdict's message; `rounds` of status, those that gave a result."""
    sent = ((one.round, one.prompts) for one in rounds)
    return "; ".join(filter(None, (sampled(spec), of_these_prompts(spec.workloads, sent))))


def sampled(spec: RunSpec) -> str:
    """`at temperature 0`; where workloads differ, each by its name."""
    ways = {workload.name: _way(spec, workload) for workload in spec.workloads}
    if len(kinds := dict.fromkeys(ways.values())) == 1:
        return next(iter(kinds))
    return ", ".join(f"{' and '.join(name for name, way in ways.items() if way == kind)} {kind}" for kind in kinds)


def _way(spec: RunSpec, workload: Workload) -> str:
    if workload.dataset.temperature is not None:
        return f"at temperature {workload.dataset.temperature:g}"
    engine = spec.server.engine
    own = ENGINES[engine.name].probe(engine.version).own_temperature
    return "at the model's own sampling" if own is None else f"at the server's own temperature, {own:g}"
