"""A candidate's answers against the baseline's, over all rounds: what status says of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.evidence import answers
from paceline.gate import seen
from paceline.plan.run.look import Evidence


def parity(evidence: Evidence, arm: str) -> dict[str, Any]:
    """`parity` of an arm's verdict; nothing where nobody asked."""
    if evidence.spec.parity is None:
        return {}
    said = dict(_said(evidence, arm))
    compared = {number: one for number, one in said.items() if "unknown" not in one}
    if not compared:
        whys = [one["unknown"] for one in said.values()]
        return {"parity": {"rounds": 0, "unknown": whys[-1] if whys else "it was not asked"}}
    found = seen({one.round: one for one in answers(evidence.records)}, arm, list(compared))
    gaps = [float(one["largestGap"]) for one in compared.values() if "largestGap" in one]
    firsts = [one["firstDivergence"] for one in compared.values() if "firstDivergence" in one]
    totals = {key: sum(one[key] for one in compared.values()) for key in ("identical", "nearTies", "diverged")}
    return {
        "parity": {
            "rounds": len(compared),
            "samples": evidence.spec.parity.samples,
            "settled": len(found.settled),
            **totals,
            **({"firstDivergence": min(firsts)} if firsts else {}),
            **({"largestGap": f"{max(gaps):.2f}"} if gaps else {}),
        }
    }


def _said(evidence: Evidence, arm: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Round → what its replicate of this arm says."""
    for record in evidence.results:
        for one in record["replicates"]:
            if one["arm"] == arm and "parity" in one:
                yield record["round"], one["parity"]
