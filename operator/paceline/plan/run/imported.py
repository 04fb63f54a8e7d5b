"""Checks whether rounds measured without a cluster are evidence for their run's spec. Anyone who may write
BenchmarkRounds can invent them; the checks find only what an honest file reveals."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from paceline.api.round import Round
from paceline.core import BASELINE, INCUMBENT, Accelerator, Measured, RunSpec, Scheme
from paceline.core.server import GPU_LABEL
from paceline.core.text import count, printable
from paceline.plan.objects import same_release
from paceline.plan.run.killed import is_cut_short
from paceline.plan.run.no_more_rounds import most_rounds
from paceline.plan.step import parse_time, timestamp

SKEW = timedelta(minutes=5)
"""Maximum difference between the clocks of two machines."""
MOST_SAID = 4
"""Maximum number of reasons in a message; the others are counted."""
DAMAGED = "apply the file as `paceline measure` has written it"


class UnfitError(ValueError):
    """The rounds are not evidence for this spec; the text says why, and what to do."""


def brought(spec: RunSpec, measured: Measured, rounds: Sequence[Round], now: datetime) -> tuple[Round, ...]:
    """The rounds, marked as imported, without their Job, node and file of full lines, which exist only where they were
    measured. Raises UnfitError."""
    wrong = (*contradictions(spec, rounds, now), *map(printable, measured.differs), *_unknown_here(spec, rounds))
    if said := tuple(dict.fromkeys(wrong)):
        listed = first_of(said)
        once = f"; {DAMAGED}" if DAMAGED in listed else ""
        raise UnfitError(listed.replace(f"; {DAMAGED}", "") + once)
    return tuple(map(of_elsewhere, rounds))


def first_of(said: Sequence[str]) -> str:
    more = f"; and {len(said) - MOST_SAID} more" if len(said) > MOST_SAID else ""
    return "; ".join(said[:MOST_SAID]) + more


def of_elsewhere(round: Round) -> Round:
    """The round without what only its own cluster has. Its notes name the machine (`measure.record.noted`)."""
    return replace(round, imported=True, job="", node="", raw=None)


def contradictions(spec: RunSpec, rounds: Sequence[Round], now: datetime) -> Iterator[str]:
    """What shows, wherever they are judged, that these are no rounds of this spec."""
    results = [one for one in rounds if not one.error]
    try:
        yield from _malformed(spec, results, now)
    except ValueError as error:
        yield f"its rounds cannot be read ({error}); {DAMAGED}"
    yield from _other_versions(spec, results)
    real = [one for one in results if not one.emulated]
    yield from dict.fromkeys(why for one in real for why in _on_others(spec.server.accelerator, one))


# Whether the rounds form a valid run.


def _malformed(spec: RunSpec, results: Sequence[Round], now: datetime) -> Iterator[str]:
    if not results:
        yield "spec.measured.rounds: must not be empty; apply the file once `paceline measure` is done"
    if len(results) > (most := most_rounds(spec)):
        yield f"spec.measured.rounds: {len(results)}, but a run of this spec has at most {most}"
    for number, result in enumerate(results):
        before = results[number - 1] if number else None
        yield from (f"round {number}: {why}" for why in _of_round(spec, number, result, before, now))


def _of_round(spec: RunSpec, number: int, result: Round, before: Round | None, now: datetime) -> Iterator[str]:
    if result.round != number:
        yield f"it is numbered {result.round}; {DAMAGED}"
    yield from _of_arms(spec, result)
    started, ended = parse_time(result.start_time), parse_time(result.completion_time)
    if ended < started:
        yield "it ends before it begins; set the machine's clock and measure again"
    elif ended > now + SKEW:
        yield f"it ended at {timestamp(ended)}, but it is {timestamp(now)} now: set the clocks, and measure again"
    elif before is not None and started < parse_time(before.completion_time):
        yield f"it began before the previous round ended; {DAMAGED}"


def _of_arms(spec: RunSpec, result: Round) -> Iterator[str]:
    arms, loads = {arm.name for arm in spec.arms}, {workload.name for workload in spec.workloads}
    names = Counter(one.arm for one in result.replicates)
    points = Counter((point.arm, point.workload) for point in result.points)
    counted = [*names.items(), *((f"{arm} on {load}", count) for (arm, load), count in points.items())]
    if twice := [name for name, count in counted if count > 1]:
        yield f"{printable(twice[0])[:200]} is given twice; {DAMAGED}"
    if foreign := [
        *(names.keys() - arms),
        *({arm for arm, _ in points} - arms),
        *({load for _, load in points} - loads),
    ]:
        yield f"spec has no {printable(sorted(foreign)[0])[:200]}; {DAMAGED}"
    elif not is_cut_short(result) and (len(names) < 2 or not names.keys() & {BASELINE, INCUMBENT}):
        yield f"it compares nothing: it has {' and '.join(names) or 'no arm'}; {DAMAGED}"


# Whether the rounds measured this spec.


def _unknown_here(spec: RunSpec, rounds: Sequence[Round]) -> Iterator[str]:
    """Why the rounds may have measured something else than this cluster would."""
    results = [one for one in rounds if not one.error]
    if any(result.emulated for result in results):
        if not is_emulator(image := spec.server.engine.image):
            yield f"an emulator served, but spec.engine.image is {image}: no engine has its speeds"
    else:
        yield from dict.fromkeys(why for one in results for why in _on_unknown(spec.server.accelerator, one))
    addresses = {workload.dataset.name: workload.dataset.address for workload in spec.workloads}
    anywhere = (Scheme.BUILTIN, Scheme.HUB_DATASET)
    if local := [f"{name} ({address})" for name, address in addresses.items() if address.scheme not in anywhere]:
        named = ", ".join(local)
        yield f"this cluster may have different prompts for {named}; name a file of the hub for each"


def _other_versions(spec: RunSpec, results: Sequence[Round]) -> Iterator[str]:
    wanted = spec.server.engine.version
    measured = (one for one in results if any(point.valid for point in one.points))
    for version in dict.fromkeys(result.engine_version or "" for result in measured):
        if not same_release(version, wanted):
            yield f"the servers were {version or 'of no known version'}, but spec.engine.version is {wanted}"
    own = {arm.name: arm.engine.version for arm in spec.arms if arm.engine}
    servers = (one for result in results for one in result.replicates if one.arm in own)
    reported = ((one.arm, one.version) for one in servers if one.version or not one.reason)
    for arm, version in dict.fromkeys(reported):
        if not same_release(version, own[arm]):
            told = version or "of no known version"
            yield f"the servers of {arm} were {told}, but its engine.version is {own[arm]}"


def is_emulator(image: str) -> bool:
    """Whether the repository's name says that it is an emulator: the operator cannot look into an image."""
    return "emulator" in re.split("[:@]", image.rpartition("/")[2])[0]


def _on_others(accelerator: Accelerator, result: Round) -> Iterator[str]:
    """Compare the GPUs. gpu-feature-discovery labels a node with the driver's name of its GPUs, with hyphens for
    spaces."""
    model, wanted = result.gpu_model or "", accelerator.product
    if model and accelerator.product_label == GPU_LABEL and model.replace(" ", "-") != wanted:
        yield f"it ran on {model}, but spec.accelerator.product is {wanted}"
    if model and len(result.gpus or ()) != accelerator.count:
        yield f"it ran on {count(len(result.gpus or ()), 'GPU')}, but spec.accelerator.count is {accelerator.count}"


def _on_unknown(accelerator: Accelerator, result: Round) -> Iterator[str]:
    model, wanted = result.gpu_model or "", accelerator.product
    if not model:
        yield f"its GPUs are unknown (nvidia-smi), but spec.accelerator.product is {wanted}"
    elif accelerator.product_label != GPU_LABEL:
        label = f"{accelerator.product_label}={wanted}"
        yield f"it ran on {model}, which may not be {label}: only {GPU_LABEL} has the driver's names"
