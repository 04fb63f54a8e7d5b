"""What a pool should serve, and why. Promotion, fallback and upgrade are one roll-out with another `why`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import BASELINE, PromotionMode
from paceline.plan.deployment.look import Pool, Run
from paceline.plan.terms import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An arm at a revision. `evidence` is the run that earned it its place, empty for the baseline; `question` the
    fingerprint that was answered then."""

    arm: str
    revision: str
    why: str
    question: str
    evidence: str = ""


def frozen(pool: Pool) -> Choice | None:
    """Suspended: go on with what was chosen last, whatever the spec says by now; but never with what does not start."""
    target = pool.remembered.get("target")
    if not suspended(pool) or not target or target["revision"] not in pool.kept:
        return None
    if target["revision"] == held_revision(pool):
        return None
    return Choice(
        arm=target["arm"],
        revision=target["revision"],
        question=target.get("fingerprint", ""),
        evidence=target.get("evidence", ""),
        why=target["why"],
    )


def proven(pool: Pool) -> Choice | None:
    """The winner of the run that answers the question of now."""
    run = pool.decided
    arm = pool.arms.get((run.winner if run else None) or "")
    if run is None or arm is None or run.outcome != "Promote":
        return None
    revision = pool.revision(arm)
    if revision == held_revision(pool) or not allowed(pool, run, revision):
        return None
    speed = run.ratio(arm.name)
    return Choice(
        arm=arm.name,
        revision=revision,
        question=run.fingerprint,
        evidence=run.name,
        why=f"{run.name}: {arm.name} is {bounds(speed)} against the baseline",
    )


def as_before(pool: Pool) -> Choice | None:
    """What was earned stays, also when the run that earned it is gone; a changed spec changes the revision."""
    target: Mapping[str, Any] = pool.remembered.get("target") or {}
    arm = pool.arms.get(target.get("arm", ""))
    if (
        arm is None
        or not target.get("evidence")
        or target.get("fingerprint") != pool.question
        or target["revision"] != pool.revision(arm)
        or target["revision"] == held_revision(pool)
        or pool.decided
    ):
        return None
    return Choice(
        arm=arm.name,
        revision=target["revision"],
        question=target["fingerprint"],
        evidence=target["evidence"],
        why=f"{target['evidence']} has shown it before",
    )


def unproven(pool: Pool) -> Choice:
    """Nothing has been shown to be faster."""
    held = hold(pool)
    return Choice(
        arm=BASELINE,
        revision=pool.revision(pool.arms[BASELINE]),
        question=pool.question,
        why=f"held: {held['reason']}" if held else "no candidate has been shown to be faster",
    )


CHOICES = (frozen, proven, as_before)
"""The first answer wins; where there is none, the baseline is served."""


def choose(pool: Pool) -> Choice:
    return next((choice for rule in CHOICES if (choice := rule(pool))), unproven(pool))


def as_chosen(pool: Pool, choice: Choice) -> bool:
    """The servers are what was chosen, all of them ready and none of another revision left."""
    return pool.servers is not None and pool.servers.revision == choice.revision and pool.servers.settled


def hold(pool: Pool) -> Mapping[str, Any]:
    """What keeps the same evidence from promoting again; it ends with the question, or the revision, it was set for.
    While suspended the question is the one that was, whatever the spec says by now."""
    held: Mapping[str, Any] = pool.remembered.get("hold") or {}
    if suspended(pool):
        return held
    asked_then = (pool.remembered.get("target") or {}).get("fingerprint") == pool.question
    return held if asked_then and held.get("revision") in {pool.revision(arm) for arm in pool.spec.arms} else {}


def suspended(pool: Pool) -> bool:
    spec = pool.snapshot.spec
    return spec is not None and spec.suspend


def has_served(pool: Pool, revision: str) -> bool:
    """All servers were of this revision and ready since it was chosen last; what served before it was last given up
    does not count."""
    serving, target = pool.remembered.get("serving") or {}, pool.remembered.get("target") or {}
    if not serving.get("revision") == target.get("revision") == revision:
        return False
    return parse_time(serving["since"]) >= parse_time(target["since"])


def held_revision(pool: Pool) -> str | None:
    return hold(pool).get("revision")


def allowed(pool: Pool, run: Run, revision: str) -> bool:
    """Manual: a person has written `promote.paceline.dev/POOL: REVISION@TOKEN`, now or when it was chosen."""
    spec = pool.snapshot.spec
    if spec is None or spec.promotion.mode is PromotionMode.AUTOMATIC:
        return True
    target = pool.remembered.get("target") or {}
    chosen = target.get("evidence") == run.name and target["revision"] == revision
    return chosen or pool.snapshot.annotations.get(promote_annotation(pool), "").split("@")[0] == revision


def promote_annotation(pool: Pool) -> str:
    return f"promote.paceline.dev/{pool.name}"


def bounds(speed: Mapping[str, str]) -> str:
    """`1.36x (1.34–1.39)`."""
    if not speed:
        return "faster"
    return f"{float(speed['ratio']):.2f}x ({float(speed['lower']):.2f}–{float(speed['upper']):.2f})"
