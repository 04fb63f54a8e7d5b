"""A round that ended with an arm's container, which was killed or has no image: what is known of it all the same
(0003)."""

from dataclasses import replace

from paceline.api.round import Round
from paceline.core import BASELINE, INCUMBENT
from paceline.engines.pod_template import arm_container
from paceline.evidence import Replicate, RoundPlan, RoundResult
from paceline.plan.run.snapshot import End

_NOT_RUN = "not run: "


def is_cut_short(record: Round) -> bool:
    return any(note.startswith(_NOT_RUN) for note in record.notes)


def as_far_as_it_came(
    plan: RoundPlan, result: RoundResult, container: str, end: End
) -> tuple[RoundPlan, RoundResult] | None:
    """The plan and the result without the arms that did not run: nothing is held against them. The arm of `container`
    has failed like one whose server ended; an arm that had reported has not.

    None if the baseline was killed, or nothing is left: the round is tried again. If the baseline had not run yet,
    nothing can be compared: only the failure of the killed arm is left, so that it counts, and another round follows.
    Beside an incumbent the baseline that was killed counts, too, and so does the incumbent: the other one is left.
    """
    arms = [arm.name for arm in plan.arms]
    told = {replicate.arm for replicate in result.replicates}
    killed = {arm for arm in arms if arm_container(arm) == container} - told
    references = [arm for arm in (BASELINE, INCUMBENT) if arm in arms]
    left_to_compare = [arm for arm in references if arm not in killed][:1]
    ran = told | killed if plan.cells or {*left_to_compare} & told else killed
    if (references and not left_to_compare) or not ran:
        return None
    left = ", ".join(arm for arm in arms if arm not in told | killed)
    failed = (Replicate(arm=arm, error=end.line, failure=end.failure) for arm in killed)
    return replace(plan, arms=tuple(arm for arm in plan.arms if arm.name in ran)), replace(
        result,
        replicates=(*(one for one in result.replicates if one.arm in ran), *failed),
        # The file has more lines by now than the client had counted.
        lines_sha256="",
        notes=(*result.notes, *([f"{_NOT_RUN}{left}: {end.line}"] if left else [])),
    )
