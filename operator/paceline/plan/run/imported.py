"""The rounds that a run brings along, measured without a cluster (0059): whether they are of its spec, and what they
show, judged anew. Whoever may write them may invent them; what is checked here is what an honest file tells of itself.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from paceline.api.run_status import Round
from paceline.core import BASELINE, Accelerator, Measured, RunSpec, Scheme
from paceline.core.server import GPU_LABEL
from paceline.core.text import printable
from paceline.evidence import AnswerError, RoundResult, decode, judge
from paceline.evidence.round_status import round_record
from paceline.plan.run.give_up import most_rounds
from paceline.plan.step import timestamp
from paceline.plan.versions import same_release
from paceline.render import Owner
from paceline.render.benchmark import round_plan

SKEW = timedelta(minutes=5)
"""By which the clocks of two machines may differ."""
MOST_TRIES = 1000
MOST_SAID = 4
"""Reasons that a message lists; the others are counted."""
DAMAGED = "apply the file as `paceline measure` has written it"


class UnfitError(ValueError):
    """Rounds that are no evidence of this spec; the text says why, and what to do."""


def brought(owner: Owner, spec: RunSpec, measured: Measured, now: datetime) -> tuple[Round, ...]:
    """The rounds as records of status. What their clients claimed of validity, or of a verdict, is not among them.
    Raises UnfitError."""
    results = tuple(_read(number, message) for number, message in enumerate(measured.rounds))
    if wrong := tuple(dict.fromkeys((*_malformed(spec, results, now), *_of_something_else(spec, measured, results)))):
        more = f"; and {len(wrong) - MOST_SAID} more" if len(wrong) > MOST_SAID else ""
        raise UnfitError("; ".join(wrong[:MOST_SAID]) + more)
    try:
        return tuple(_record(owner, spec, measured, result) for result in results)
    except (TypeError, ValueError, AttributeError, KeyError, ArithmeticError) as error:
        raise UnfitError(f"spec.measured.rounds: they cannot be judged ({type(error).__name__}); {DAMAGED}") from error


def _read(number: int, message: str) -> RoundResult:
    try:
        return decode(message)
    except AnswerError as error:
        raise UnfitError(f"spec.measured.rounds[{number}]: {error}; {DAMAGED}") from error


def _record(owner: Owner, spec: RunSpec, measured: Measured, result: RoundResult) -> Round:
    """Without Job, node and file of full lines: this cluster has none of them. The note names the machine."""
    arms = {arm.name: arm for arm in spec.arms}
    plan = round_plan(owner, spec, tuple(arms[one.arm] for one in result.replicates), result.round, result.try_)
    record = round_record(plan, result, judge(plan, result), job="", node="")
    said = printable(measured.note) or f"measured on {printable(measured.machine)} without a cluster"
    return replace(record, imported=True, raw=None, notes=(said, *record.notes))


# Whether the rounds are those of a run.


def _malformed(spec: RunSpec, results: Sequence[RoundResult], now: datetime) -> Iterator[str]:
    if not results:
        yield "spec.measured.rounds: there is none; apply the file once `paceline measure` has ended"
    if len(results) > (most := most_rounds(spec)):
        yield f"spec.measured.rounds: {len(results)}, and a run of this spec has at most {most}"
    for number, result in enumerate(results):
        before = results[number - 1] if number else None
        yield from (f"spec.measured.rounds[{number}]: {why}" for why in _of_round(spec, number, result, before, now))


def _of_round(
    spec: RunSpec, number: int, result: RoundResult, before: RoundResult | None, now: datetime
) -> Iterator[str]:
    if result.round is True or result.round != number:
        yield f"it says that it is number {result.round!r}; rounds stand in order, each once; {DAMAGED}"
    if not (isinstance(result.try_, int) and 0 <= result.try_ < MOST_TRIES):
        yield f"it says that it is try {result.try_!r}; {DAMAGED}"
    yield from _of_arms(spec, result)
    if result.finished < result.started:
        yield "it ends before it begins; set the machine's clock and measure again"
    elif result.finished > (now + SKEW).timestamp():
        ended = timestamp(datetime.fromtimestamp(result.finished, UTC))
        yield f"it ended at {ended}, and it is {timestamp(now)}: set the clocks, and measure again"
    elif before is not None and result.started < before.finished:
        yield f"it began before the one before it had ended; {DAMAGED}"


def _of_arms(spec: RunSpec, result: RoundResult) -> Iterator[str]:
    """Names are compared as texts: what is forged may be anything."""
    arms, loads = {arm.name for arm in spec.arms}, {workload.name for workload in spec.workloads}
    names = Counter(str(one.arm) for one in result.replicates)
    points = Counter((str(one.arm), str(point.workload)) for one in result.replicates for point in one.points)
    counted = [*names.items(), *((f"{arm} on {load}", count) for (arm, load), count in points.items())]
    if twice := [name for name, count in counted if count > 1]:
        yield f"{printable(twice[0])[:200]} is there twice; {DAMAGED}"
    if foreign := [*(names.keys() - arms), *({workload for _, workload in points} - loads)]:
        yield f"spec has no {printable(sorted(foreign)[0])[:200]}; {DAMAGED}"
    elif BASELINE not in names or len(names) < 2:
        yield f"it compares nothing: it has {' and '.join(names) or 'no arm'}; {DAMAGED}"


# Whether it is this spec that they are of.


def _of_something_else(spec: RunSpec, measured: Measured, results: Sequence[RoundResult]) -> Iterator[str]:
    yield from map(printable, measured.differs)
    engine = spec.server.engine
    for version in dict.fromkeys(result.engine_version for result in results):
        if not same_release(version, engine.version):
            yield f"the servers were {version or 'of no known version'}, and spec.engine.version is {engine.version}"
    if any(result.emulated for result in results):
        if not is_emulator(engine.image):
            yield f"an emulator served, and spec.engine.image is {engine.image}: its speeds are of no engine"
    else:
        yield from dict.fromkeys(why for result in results for why in _on_others(spec.server.accelerator, result))
    for workload in spec.workloads:
        address = workload.dataset.address
        if address.scheme not in (Scheme.BUILTIN, Scheme.HUB_DATASET):
            yield (
                f"the prompts of {workload.dataset.name} are {address}: whether this cluster has the same is not "
                "known; name a file of the hub"
            )


def is_emulator(image: str) -> bool:
    """Whether its repository is named as an emulator's: the operator cannot look into an image."""
    return "emulator" in re.split("[:@]", image.rpartition("/")[2])[0]


def _on_others(accelerator: Accelerator, result: RoundResult) -> Iterator[str]:
    """gpu-feature-discovery labels a node with the driver's name of its GPUs, with hyphens for spaces."""
    model, wanted = result.gpu_model or "", accelerator.product
    if not model:
        yield f"which GPUs it ran on is not known (nvidia-smi), and spec.accelerator.product is {wanted}"
    elif accelerator.product_label != GPU_LABEL:
        label = f"{accelerator.product_label}={wanted}"
        yield f"it ran on {model}; whether that is {label} is not known: only {GPU_LABEL} has the driver's names"
    elif model.replace(" ", "-") != wanted:
        yield f"it ran on {model}, and spec.accelerator.product is {wanted}"
    if model and len(result.gpus) != accelerator.count:
        yield f"it ran on {len(result.gpus)} GPUs, and spec.accelerator.count is {accelerator.count}"
