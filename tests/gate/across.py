"""How often the comparison of two runs errs, and what it shows: `python -m tests.gate.across` prints the table of
docs/gate.md.

Each run stops at the look at which the gate is done with it; so their numbers of rounds depend on what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.support.campaigns import Truth, against, measure

from paceline import core, gate

GATE = core.Gate()
WORKLOADS = ("code", "swe", "terminal", "chat")
Noise = Mapping[str, float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    noise: str
    first: Noise
    second: Noise
    speed_ups: tuple[float, float]
    """True ones of the only candidate, on every workload, in either run."""
    nodes: float = 1.0
    """How much faster the second run's node is, whatever runs on it."""

    @property
    def falls(self) -> bool:
        return self.speed_ups[1] < self.speed_ups[0]


POINT: Noise = {"cv": 0.005}
STARTS: Noise = {"cv": 0.005, "start": 0.01}
ROUGH: Noise = {"cv": 0.005, "start": 0.025}
TAILS: Noise = {"cv": 0.005, "start": 0.01, "tail": True}

ROWS = (
    Row(name="1.06 then, 1.06 now", noise="point 0.5 %", first=POINT, second=POINT, speed_ups=(1.06, 1.06)),
    Row(name="1.06 then, 1.06 now", noise="and start 1 %", first=STARTS, second=STARTS, speed_ups=(1.06, 1.06)),
    Row(name="1.06 then, 1.06 now", noise="and start 1 %, t3", first=TAILS, second=TAILS, speed_ups=(1.06, 1.06)),
    Row(name="1.06 then, 1.06 now", noise="start 0, then 2.5 %", first=POINT, second=ROUGH, speed_ups=(1.06, 1.06)),
    Row(
        name="1.40 then, 1.40 now on a node 10 % faster", noise="and start 1 %", first=STARTS, second=STARTS,
        speed_ups=(1.4, 1.4), nodes=1.1,
    ),
    Row(name="1.40 then, 1.34 now", noise="point 0.5 %", first=POINT, second=POINT, speed_ups=(1.4, 1.34)),
    Row(name="1.40 then, 1.34 now", noise="and start 1 %", first=STARTS, second=STARTS, speed_ups=(1.4, 1.34)),
    Row(name="1.40 then, 1.17 now", noise="and start 1 %", first=STARTS, second=STARTS, speed_ups=(1.4, 1.17)),
    Row(name="1.40 then, 1.17 now", noise="start 2.5 %", first=ROUGH, second=ROUGH, speed_ups=(1.4, 1.17)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Shares of the campaigns: in which some change was shown that is none, or in the wrong direction; and in which
    that of the mean was shown."""

    wrong: float
    shown: float


def counted(row: Row, campaigns: int) -> Found:
    found = [_signs(row, seed) for seed in range(campaigns)]
    wrong = sum(1 in signs.values() or (-1 in signs.values() and not row.falls) for signs in found)
    shown = sum(signs["mean"] == -1 for signs in found) if row.falls else sum(any(signs.values()) for signs in found)
    return Found(wrong=wrong / campaigns, shown=shown / campaigns)


def _signs(row: Row, seed: int) -> Mapping[str, int]:
    """Workload or mean → 1 for shown to be faster than then, −1 for slower, 0 for neither."""
    first = _stopped(against(dict.fromkeys(WORKLOADS, row.speed_ups[0])), row.first, 2 * seed)
    second = _stopped(_on(row.nodes, against(dict.fromkeys(WORKLOADS, row.speed_ups[1]))), row.second, 2 * seed + 1)
    changes = gate.across(GATE, ("baseline", "candidate"), dict.fromkeys(WORKLOADS, 1.0), first, second)
    return dict(_sign(name, one.change) for name, one in changes["candidate"].speed_ups.items())


def _sign(name: str, change: core.Bounds | None) -> tuple[str, int]:
    return name, 0 if change is None else (change.lower > 1) - (change.upper < 1)


def _on(node: float, truth: Truth) -> Truth:
    return {arm: {w: node * speed for w, speed in of.items()} for arm, of in truth.items()}


def _stopped(truth: Truth, noise: Noise, seed: int) -> Sequence[core.Measurement]:
    """A campaign up to the look that ends it."""
    every = measure(truth, seed=seed, **noise)  # type: ignore[arg-type]
    weights = dict.fromkeys(WORKLOADS, 1.0)
    for look in GATE.decide_after_rounds:
        so_far = [one for one in every if one.round < look]
        if gate.decide(GATE, list(truth), weights, so_far).final:
            return so_far
    return [one for one in every if one.round < GATE.decide_after_rounds[-1]]


def lines(campaigns: int) -> Iterator[str]:
    for row in ROWS:
        found = counted(row, campaigns)
        yield f"| {row.name} | {row.noise} | {found.wrong:.4f} | {f'{found.shown:.4f}' if row.falls else ''} |"


def main() -> None:
    for line in lines(4000):
        print(line, flush=True)


if __name__ == "__main__":
    main()
