"""Two runs of one question → whether a speed-up changed between them, and nothing about absolute speeds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline import core, gate
from paceline.api.record import from_status
from paceline.api.round import Round, rounds_of
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.text import in_all_texts, printable_lines
from paceline.evidence import question
from paceline.evidence.changes import changes
from paceline.evidence.round_status import measurements
from paceline.report import facts, read
from paceline.report.comparison_model import AbsoluteRow, ChangeRow, Comparison, Differs, Moved, Side, Speed
from paceline.report.model import Manifest, Run
from paceline.report.text import change, count, ratio

MAY_DIFFER = ("image", "imagePullPolicy", "version")
"""Fields of spec.engine that the comparison is about: everything else must be the same question."""
NAMES = ("pool",)
"""Fields that only name."""
NO_FACTS = ("Run", "Purpose", "Fingerprint", "Judged again", "Gate", "Finished")
"""What is said elsewhere, or follows from other facts."""


def refuse(first: Manifest, second: Manifest) -> None:
    """Raises ValueError, with the fields that differ, for two runs that cannot be compared."""
    names = [one["metadata"]["name"] for one in (first, second)]
    for run in (first, second):
        read.refuse(run)
        if core.purpose_of(run["spec"]) is core.Purpose.SEARCH:
            raise ValueError(f"{run['metadata']['name']}: a search ranks by estimates; compare the gates that follow")
    if _identity(first) == _identity(second):
        raise ValueError(f"{names[0]}: is the same run twice")
    if differs := tuple(_other_question(first["spec"], second["spec"])):
        raise ValueError(f"{' and '.join(names)} do not ask the same question: {'; '.join(differs)}")
    statuses = [from_status(BenchmarkRunStatus, one.get("status")) for one in (first, second)]
    begun = [status.start_time for status in statuses]
    if begun[0] and begun[1] and begun[0] > begun[1]:
        raise ValueError(f"{names[0]} began after {names[1]}: name the earlier one with --against")
    rounds = [rounds_of(one) for one in (first, second)]
    emulated = [any(entry.emulated for entry in one) for one in rounds]
    if emulated[0] != emulated[1] and all(rounds):
        raise ValueError(f"{names[emulated.index(True)]} is emulated and the other is not: no model ran in it")
    if shared := set.intersection(*_measurers((first, second), rounds)):
        raise ValueError(f"{' and '.join(names)} judge the same rounds, measured by {', '.join(sorted(shared))}")
    if differs := tuple(_other_prompts(*rounds)):
        raise ValueError(f"{' and '.join(names)} do not ask the same question: {'; '.join(differs)}")


def compare(first: Manifest, second: Manifest, runs: tuple[Run, Run]) -> Comparison:
    """`runs` are what the report says of each by itself. Raises ValueError as `refuse`."""
    first, second = in_all_texts([first, second], printable_lines)
    refuse(first, second)
    spec, rounds = second["spec"], [rounds_of(one) for one in (first, second)]
    rule = read.gate(spec)
    arms = [arm["name"] for arm in spec["arms"]]
    weights = {read.workload(one): float(one.get("weight", 1)) for one in spec["workloads"]}
    measured = [measurements(one) for one in rounds]
    found = gate.across(rule, arms, weights, measured[0], measured[1], read.rated(spec))
    speed_ups = tuple(row for arm, of in found.items() for row in _rows(arm, of.speed_ups))
    sides = _sides(runs)
    return Comparison(
        first=sides[0],
        second=sides[1],
        emulated=any(run.emulated for run in runs),
        confidence=rule.confidence,
        arms=tuple(arms),
        moved={row.arm: row.moved for row in reversed(speed_ups) if row.workload in gate.MEANS},
        heading=_heading(speed_ups),
        sentence=_sentence(speed_ups),
        speed_ups=speed_ups,
        acceptance=tuple(row for arm, of in found.items() for row in _rows(arm, of.acceptance)),
        absolute=tuple(_absolute(runs)),
        differs=tuple(_facts(*(dict(run.provenance) for run in runs))),
        resolved=tuple(_resolved(arms, *(facts.resolved(arms, one) for one in rounds))),
    )


# Whether they may be compared.


def _identity(run: Manifest) -> Any:
    metadata = run["metadata"]
    return metadata.get("uid") or (metadata.get("namespace"), metadata["name"], metadata.get("creationTimestamp"))


def _measurers(runs: Sequence[Manifest], rounds: Sequence[Sequence[Round]]) -> list[set[str]]:
    """Of either run, the names of the runs that measured its rounds. Two clusters may have runs of one name."""
    own = [one["metadata"]["name"] for one in runs]
    names = own if own[0] != own[1] else [f"{name} of run {number}" for number, name in enumerate(own, 1)]
    return [{entry.run or name for entry in of} for name, of in zip(names, rounds, strict=True)]


def _asked(spec: Manifest) -> Mapping[str, Any]:
    engine = {key: value for key, value in spec["engine"].items() if key not in MAY_DIFFER}
    return {**{key: value for key, value in spec.items() if key not in NAMES}, "engine": engine}


def _other_question(first: Manifest, second: Manifest) -> Iterator[str]:
    asked = [_asked(spec) for spec in (first, second)]
    if question(asked[0]) == question(asked[1]):
        return
    said = list(changes(*asked))
    if core.purpose_of(first) is not core.purpose_of(second):
        said.insert(0, "purpose changed")
    yield from said or ("a field of spec that this release cannot name",)


def _other_prompts(first: Sequence[Round], second: Sequence[Round]) -> Iterator[str]:
    """By digest: one name may stand for another file."""
    sent = [{name: digest for entry in of for name, digest in entry.datasets.items()} for of in (first, second)]
    for name in sent[0].keys() & sent[1].keys():
        digests = [of[name] for of in sent]
        if digests[0] != digests[1]:
            yield f"the prompts of {name} are another file: sha256 {digests[0][:12]} and {digests[1][:12]}"


# What is said of them.


def _sides(runs: tuple[Run, Run]) -> tuple[Side, Side]:
    first, second = (
        Side(run=run.name, namespace=run.namespace, label=label, outcome=run.outcome)
        for run, label in zip(runs, _labels(runs), strict=True)
    )
    return first, second


def _labels(runs: tuple[Run, Run]) -> tuple[str, str]:
    """By what differs: the release, else the image's tag or digest, else the name."""
    facts_of = [dict(run.provenance) for run in runs]
    images = [of.get("Image", "").rpartition("/")[2] for of in facts_of]
    for labels in ([of.get("Engine", "") for of in facts_of], images, [run.name for run in runs]):
        if labels[0] != labels[1] and all(labels):
            return labels[0], labels[1]
    return f"{runs[0].namespace}/{runs[0].name}", f"{runs[1].namespace}/{runs[1].name}, the later"


def _rows(arm: str, found: Mapping[str, gate.Change]) -> Iterator[ChangeRow]:
    for workload, one in found.items():
        yield ChangeRow(
            arm=arm,
            workload=workload,
            first=one.first,
            second=one.second,
            change=one.change,
            moved=_moved(one.change),
            rounds=one.rounds,
        )


def _moved(bounds: core.Bounds | None) -> Moved:
    if bounds is None or bounds.lower <= 1 <= bounds.upper:
        return Moved.OPEN
    return Moved.ROSE if bounds.lower > 1 else Moved.FELL


def _heading(rows: Sequence[ChangeRow]) -> str:
    said = [_of_arm(row) for row in rows if row.workload == gate.MEANS[0]]
    return "; ".join(said) or "No candidate has two complete rounds"


def _of_arm(row: ChangeRow) -> str:
    if row.change is None or row.first is None or row.second is None:
        few = "first" if row.first is None else "second"
        return f"nothing is shown of {row.arm}: the {few} run has {count(min(row.rounds), 'complete round')} of it"
    ratios = f"from {ratio(row.first.ratio)} to {ratio(row.second.ratio)}"
    if row.moved is Moved.OPEN:
        return f"no change of {row.arm}'s speed-up is shown ({ratios})"
    return f"{row.arm}'s speed-up {row.moved} {ratios}"


def _sentence(rows: Sequence[ChangeRow]) -> str:
    """Within which bounds, and what went another way than the mean."""
    means = [row for row in rows if row.workload == gate.MEANS[0] and row.change]
    changes = [f"{row.arm}: a change of {between(row.change)}." for row in means if row.change]
    one_by_one = [f"{row.arm} on {row.workload} {row.moved}" for row in rows if _by_itself(row, rows)]
    return " ".join([*changes, *([f"Of single workloads: {', '.join(one_by_one)}."] if one_by_one else [])])


def between(bounds: core.Bounds) -> str:
    """−16.2 % to −11.8 %."""
    return f"{change(bounds.lower - 1)} to {change(bounds.upper - 1)}"


def _by_itself(row: ChangeRow, rows: Sequence[ChangeRow]) -> bool:
    """Whether it moved otherwise than the arm's mean, which the sentence has."""
    mean = next((one.moved for one in rows if one.arm == row.arm and one.workload == gate.MEANS[0]), Moved.OPEN)
    return row.workload not in gate.MEANS and row.moved not in (Moved.OPEN, mean)


def _absolute(runs: tuple[Run, Run]) -> Iterator[AbsoluteRow]:
    for workload in runs[1].workloads:
        for arm in runs[1].arms:
            first, second = (_speed(run, arm, workload) for run in runs)
            if first or second:
                yield AbsoluteRow(arm=arm, workload=workload, first=first, second=second)


def _speed(run: Run, arm: str, workload: str) -> Speed | None:
    series = next((one for one in run.series if (one.arm, one.workload) == (arm, workload)), None)
    used = [dot.speed for dot in series.dots if not dot.why and dot.speed] if series else []
    if series is None or series.typical is None or not used:
        return None
    return Speed(typical=series.typical, least=min(used), most=max(used), rounds=len(used))


def _facts(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[Differs]:
    for name in dict.fromkeys((*first, *second)):
        was, now = first.get(name, ""), second.get(name, "")
        if was != now and name not in NO_FACTS:
            yield Differs(name=name, first=was, second=now)


def _resolved(
    arms: Sequence[str], first: Sequence[Mapping[str, str]], second: Sequence[Mapping[str, str]]
) -> Iterator[Differs]:
    """One line where it is the same on all arms that told anything."""
    told = [(arm, was, now) for arm, was, now in zip(arms, first, second, strict=True) if was and now]
    for key in dict.fromkeys(key for _, was, now in told for key in (*was, *now)):
        pairs = {arm: (was.get(key, ""), now.get(key, "")) for arm, was, now in told}
        if len(set(pairs.values())) == 1 and len(pairs) > 1:
            was, now = next(iter(pairs.values()))
            pairs = {"": (was, now)}
        for arm, (was, now) in pairs.items():
            if was != now:
                yield Differs(name=f"{arm}: {key}" if arm else key, first=was, second=now)
