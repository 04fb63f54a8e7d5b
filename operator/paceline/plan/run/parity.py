"""An arm's answers compared with the baseline's, over all rounds."""

from paceline.api.round import ReplicateParity
from paceline.api.run_status import ArmParity
from paceline.core import INCUMBENT
from paceline.core.outputs import MOST_COMPARED
from paceline.gate import compare_outputs
from paceline.plan.run.evidence import Evidence


def parity(evidence: Evidence, arm: str) -> ArmParity | None:
    """`parity` of an arm's verdict; None if its answers are not compared."""
    asked, arms = evidence.spec.compared_outputs, {one.name for one in evidence.spec.arms}
    if asked is None and INCUMBENT in arms:
        return ArmParity(rounds=0, unknown=f"a round compares the answers of at most {MOST_COMPARED} arms")
    if asked is None or arm not in arms:
        return None
    by_round = _by_round(evidence, arm)
    compared = {number: replicate for number, replicate in by_round.items() if not replicate.unknown}
    if not compared:
        whys = [replicate.unknown for replicate in by_round.values()]
        return ArmParity(rounds=0, unknown=whys[-1] if whys else "it was not asked")
    over_all = compare_outputs({answers.round: answers for answers in evidence.answers}, arm, list(compared))
    gaps = [replicate.largest_gap for replicate in compared.values() if replicate.largest_gap is not None]
    firsts = [replicate.first_divergence for replicate in compared.values() if replicate.first_divergence is not None]
    return ArmParity(
        rounds=len(compared),
        samples=asked.samples,
        settled=len(over_all.settled),
        differ=len(over_all.in_every_round),
        identical=sum(replicate.identical or 0 for replicate in compared.values()),
        near_ties=sum(replicate.near_ties or 0 for replicate in compared.values()),
        diverged=sum(replicate.diverged or 0 for replicate in compared.values()),
        first_divergence=min(firsts, default=None),
        largest_gap=max(gaps, default=None),
    )


def _by_round(evidence: Evidence, arm: str) -> dict[int, ReplicateParity]:
    return {
        record.round: replicate.parity
        for record in evidence.results
        for replicate in record.replicates
        if replicate.arm == arm and replicate.parity is not None
    }
