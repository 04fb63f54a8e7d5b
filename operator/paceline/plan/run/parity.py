"""A candidate's answers against the baseline's, over all rounds: what status says of them."""

from collections.abc import Iterator

from paceline.api.run_status import ArmParity, ReplicateParity
from paceline.evidence.round_status import answers
from paceline.gate import compare_outputs
from paceline.plan.run.snapshot import Evidence


def parity(evidence: Evidence, arm: str) -> ArmParity | None:
    """`parity` of an arm's verdict; nothing where nobody asked."""
    if evidence.spec.parity is None:
        return None
    said = dict(_said(evidence, arm))
    compared = {number: one for number, one in said.items() if not one.unknown}
    if not compared:
        whys = [one.unknown for one in said.values()]
        return ArmParity(rounds=0, unknown=whys[-1] if whys else "it was not asked")
    found = compare_outputs({one.round: one for one in answers(evidence.records)}, arm, list(compared))
    gaps = [one.largest_gap for one in compared.values() if one.largest_gap is not None]
    firsts = [one.first_divergence for one in compared.values() if one.first_divergence is not None]
    return ArmParity(
        rounds=len(compared),
        samples=evidence.spec.parity.samples,
        settled=len(found.settled),
        identical=sum(one.identical or 0 for one in compared.values()),
        near_ties=sum(one.near_ties or 0 for one in compared.values()),
        diverged=sum(one.diverged or 0 for one in compared.values()),
        first_divergence=min(firsts, default=None),
        largest_gap=max(gaps, default=None),
    )


def _said(evidence: Evidence, arm: str) -> Iterator[tuple[int, ReplicateParity]]:
    """Round → what its replicate of this arm says."""
    for record in evidence.results:
        for one in record.replicates:
            if one.arm == arm and one.parity is not None:
                yield record.round, one.parity
