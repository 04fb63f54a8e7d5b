"""The current comparison: what its rounds show of each candidate before the gate's next look, marked as provisional."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from paceline import core, gate
from paceline.api.round import Round
from paceline.api.run_status import BenchmarkRunStatus, CandidateVerdict, Result
from paceline.core.manifest import Object
from paceline.report.measured import verdict_view
from paceline.report.model import MEANS, PROVISIONAL


def provisional(
    spec: Object, rule: core.Gate, workloads: Sequence[str], status: BenchmarkRunStatus, rounds: Sequence[Round]
) -> BenchmarkRunStatus:
    """The status with current bounds for every candidate between two looks."""
    found = verdict_view(gate.so_far, spec, rule, workloads, rounds).arms
    between = {arm: one for arm, one in found.items() if one.mean and one.rounds not in rule.decide_after_rounds}
    of_looks = [result for result in status.results or () if result.arm not in between]
    known = {one.arm: one for one in status.arm_verdicts or ()}
    return replace(
        status,
        results=(*of_looks, *(result for arm, one in between.items() for result in _results(arm, one))),
        arm_verdicts=tuple(_said(known.get(arm, CandidateVerdict(arm=arm)), one, rule) for arm, one in found.items()),
    )


def _said(known: CandidateVerdict, now: core.ArmVerdict, rule: core.Gate) -> CandidateVerdict:
    """Too few rounds are not an error while others follow."""
    look = next((look for look in rule.decide_after_rounds if look > now.rounds), now.rounds)
    lost = f"; {now.lost}" if now.lost else ""
    if now.mean and now.rounds not in rule.decide_after_rounds:
        reason = f"{now.rounds} of {look} rounds; no decision before round {look}{lost}"
        return replace(known, outcome=PROVISIONAL, reason=reason, margin=now.margin)
    if now.reason == gate.Finding.TOO_FEW_ROUNDS:
        reason = f"no estimate before round 2, no decision before round {look}{lost}"
        return replace(known, outcome=core.ArmOutcome.UNDECIDED.value, reason=reason)
    return known


def _results(arm: str, now: core.ArmVerdict) -> Iterator[Result]:
    means = zip(MEANS, (now.mean, now.rated), strict=True)
    for workload, of in (*means, *now.workloads.items()):
        if of:
            yield Result(arm=arm, workload=workload, ratio=of.ratio, lower=of.lower, upper=of.upper)
