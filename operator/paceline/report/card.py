"""A run as a model card of the hub: Markdown, with a `model-index` only if measurements have promoted a winner.

The card repeats what the verdict and the report say. It leaves out what names the measurer's machines.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from huggingface_hub import EvalResult, ModelCardData

from paceline import __version__, core
from paceline.api.round import Round, rounds_of
from paceline.core.manifest import Object
from paceline.core.masking import without_secrets
from paceline.core.source import Source
from paceline.core.text import in_all_texts, printable
from paceline.report.build import runs
from paceline.report.markdown import escaped
from paceline.report.model import MEANS, CandidateView, EffectView, LimitEffect, RunView, Shown
from paceline.report.read import named_workload
from paceline.report.tables import PACE
from paceline.report.text import EMULATED_NOTICE, interval_text, ratio_text, significant, workload_text

_NEAR = 0.5
"""A limit is nearly hit if the interval takes more than this share of the change that it allows."""
_MACHINES = frozenset({"Run", "Purpose", "Judged again", "Node", "GPUs", "Image that measured"})
"""Provenance that is not for the public: UUIDs of GPUs, and names in the measurer's cluster."""
_WITHOUT_CARD = {
    "Error": "the measurement failed, which says nothing about a head; measure again",
    "Measuring": "it has no verdict yet; wait for it, or continue it with the same `paceline measure`",
    "Found": "a search has no verdict; name the run of the gate after it",
    "Ended": "it ended without a verdict; name a run with a gate, not a Sweep",
}
_OF_THE_BASELINE = "its winner is a changed baseline, which does not speculate"
_COVERS = (
    "The verdict covers the prompts, loads and sampling listed here, on this hardware, driver and engine release. It "
    "says nothing about others."
)

_UNNAMED = (
    "No driver has named the accelerator of these measurements: the one below is what the run asked for, and may not "
    "be what it ran on."
)


def model_card(manifest: Object) -> str:
    """Raises ValueError for what is not a BenchmarkRun, and for a run without a verdict on its candidates."""
    safe = in_all_texts(manifest, printable)
    (run,) = runs([safe])
    why = _WITHOUT_CARD.get(run.outcome) or (_OF_THE_BASELINE if run.winner == core.BASELINE else "")
    if why:
        raise ValueError(f"{run.name}: no model card: {why}")
    rounds, arms = rounds_of(safe), {arm["name"]: arm for arm in safe["spec"]["arms"]}
    shown = [one for one in run.candidates if one.name == run.winner] or list(run.candidates)
    claims = run.outcome == "Promote" and not run.emulated
    body = "\n".join(_body(run, rounds, arms, safe["spec"], shown))
    return (f"---\n{_metadata(run, arms, safe['spec']).to_yaml()}\n---\n\n" if claims else "") + without_secrets(body)


# The front matter.


def _metadata(run: RunView, arms: Mapping[str, Object], spec: Object) -> ModelCardData:
    head, target = _repository(arms[run.winner].get("draft") or {}), _repository(spec["target"])
    return ModelCardData(
        base_model=target if head else None,
        tags=["speculative-decoding"],
        model_name=head or target or run.served_name,
        eval_results=[result for workload in spec["workloads"] for result in _results(run, workload)],
    )


def _results(run: RunView, workload: Object) -> Iterator[EvalResult]:
    for kind, name, value, bounds in _metrics(run, named_workload(workload)):
        yield EvalResult(
            task_type="text-generation",
            dataset_type=_repository(workload) or workload["name"],
            dataset_name=workload["name"],
            dataset_config=named_workload(workload),
            dataset_revision=workload.get("commit") or None,
            metric_type=kind,
            metric_value=round(value, 4),
            metric_name=name,
            metric_args=dict(bounds) or None,
        )


def _metrics(run: RunView, workload: str) -> Iterator[tuple[str, str, float, Mapping[str, float]]]:
    """Type, name, value and bounds. An interval is in the name, too: the hub shows no arguments."""
    for bounds in (
        effect.bounds
        for candidate in run.candidates
        for effect in candidate.effects
        if (candidate.name, effect.workload) == (run.winner, workload)
    ):
        arguments = {"lower": round(bounds.lower, 4), "upper": round(bounds.upper, 4)}
        yield "speedup", f"Speed-up ({interval_text(bounds, 3)})", bounds.ratio, arguments
    for kind, name, values, arm in (
        ("output_tokens_per_second", "Output tokens/s", _speeds(run), run.winner),
        ("output_tokens_per_second_baseline", "Output tokens/s, baseline", _speeds(run), core.BASELINE),
        ("acceptance_length", "Acceptance length", _lengths(run), run.winner),
    ):
        if (arm, workload) in values:
            yield kind, name, values[arm, workload], {}


def _repository(entry: Object) -> str:
    """OWNER/NAME on the hub of a model or of prompts; "" for other sources."""
    try:
        source = Source.parse(entry.get("source") or "")
    except ValueError:
        return ""
    return source.name if str(source).startswith("hf://") else ""


# What a reader sees.


def _body(
    run: RunView, rounds: Sequence[Round], arms: Mapping[str, Object], spec: Object, shown: Sequence[CandidateView]
) -> Iterator[str]:
    heads = dict.fromkeys(_repository(arms[one.name].get("draft") or {}) for one in shown if one.name in arms)
    yield f"# {escaped(', '.join(filter(None, heads)) or run.served_name)}"
    if run.emulated:
        yield f"\n> **{escaped(EMULATED_NOTICE)}. Do not publish this card.**"
    models = ", ".join(dict.fromkeys(entry.gpu_model for entry in rounds if entry.gpu_model))
    if not (models or run.emulated):
        yield f"\n> **{escaped(_UNNAMED)}**"
    if run.outcome != "Promote":
        yield f"\n> **{escaped(f'The verdict is {run.outcome}: no speed-up is claimed.')}**"
    yield f"\n{escaped(run.sentence)}"
    own = any(arms[one.name].get("engine") for one in shown if one.name in arms)
    beside = "a baseline of another engine" if own else "the same server without speculation"
    yield f"\n## Speed beside {beside}\n\n{escaped(run.asked)}\n"
    yield from _table(run, shown)
    yield f"\n## When not to use it\n\n- {_COVERS}"
    yield from (f"- {escaped(line)}" for line in _against(run, shown))
    yield "\n## How it was measured\n"
    measured = [one for one in rounds if not one.error]
    again = sum(bool(one.run) for one in measured)
    yield f"- Rounds: {len(measured)}" + (f", {again} of them judged again by another gate" if again else "")
    yield from (f"- {escaped(f'{name}: {value}')}" for name, value in run.provenance if name not in _MACHINES)
    yield f"- GPU by its driver: {escaped(models) or 'unknown'}"
    for version in (one for one in run.configuration.asked if one.name == "engine.version"):
        of_arms = zip(run.configuration.arms, version.values, strict=True)
        yield from (f"- {escaped(f'Engine of {arm}: {value}')}" for arm, value in of_arms if value)
    compared = {core.BASELINE, *(one.name for one in shown)}
    if commands := [(arm, argv) for arm, argv in run.configuration.commands if arm in compared]:
        yield "\n## Commands of the servers"
        for arm, argv in commands:
            yield from (f"\n{escaped(arm)}:\n", *_fenced(argv))
    yield f"\nWritten by Paceline {escaped(__version__)}.\n"


def _table(run: RunView, shown: Sequence[CandidateView]) -> Iterator[str]:
    speeds, lengths = _speeds(run), _lengths(run)
    yield (
        "| Arm | Workload | Speed-up | Interval | Beside the baseline | Tokens/s, baseline | Tokens/s | "
        "Acceptance length |\n| --- | --- | --: | --: | --- | --: | --: | --: |"
    )
    for one in shown:
        for effect in one.effects:
            numbers = [
                speeds.get((core.BASELINE, effect.workload)),
                speeds.get((one.name, effect.workload)),
                lengths.get((one.name, effect.workload)),
            ]
            cells = [
                *(one.name, workload_text(effect.workload)),
                *(ratio_text(effect.bounds.ratio, 3), interval_text(effect.bounds, 3), PACE[_pace(effect)]),
                *("–" if number is None else significant(number) for number in numbers),
            ]
            yield f"| {' | '.join(map(escaped, cells))} |"


def _speeds(run: RunView) -> Mapping[tuple[str, str], float]:
    """Output tokens per second as in the gate: of all requests together, at a rate or on a ramp of one request."""
    means = {(arm, MEANS[0]): speed for arm, speed in run.speeds.items()}
    return means | {(one.arm, one.workload): one.typical for one in run.series if one.typical is not None}


def _lengths(run: RunView) -> Mapping[tuple[str, str], float]:
    return {(one.arm, one.workload): one.typical for one in run.values if one.metric == "acceptLength"}


def _pace(effect: EffectView) -> Shown:
    """Compared with the baseline itself, not with the gate's threshold."""
    return Shown.KEPT if effect.bounds.lower > 1 else Shown.BROKEN if effect.bounds.upper < 1 else Shown.OPEN


def _against(run: RunView, shown: Sequence[CandidateView]) -> Iterator[str]:
    names = {one.name for one in shown}
    told = {Shown.BROKEN: "slower than without speculation", Shown.OPEN: "not shown to be faster"}
    for one in shown:
        for effect in one.effects:
            if why := told.get(_pace(effect)):
                ratio = _measured(effect.bounds)
                yield f"{one.name}, {workload_text(effect.workload)}: {ratio}, {why}."
    yield from (sentence for limit in run.limits if limit.arm in names for sentence in _limit(limit))
    yield from (
        f"{one.name}: {one.outcome}: {one.reason}."
        for one in run.candidates
        if one.name != run.winner and (one.outcome or one.reason)
    )
    if run.crossover:
        yield f"{run.crossover.sentence} {run.crossover.numbers}."
    if run.advice:
        yield f"{run.advice}."
    yield run.outputs.sentence
    yield from (
        f"{one.arm}, compared with the baseline in {one.rounds} rounds: {one.identical} answers identical, "
        f"{one.near_ties} near ties, {one.diverged} diverged."
        if one.rounds
        else f"{one.arm}: its answers could not be compared: {one.unknown or 'unknown'}."
        for one in run.outputs.arms
        if one.arm in names
    )


def _measured(bounds: core.Bounds) -> str:
    return f"{ratio_text(bounds.ratio, 3)} ({interval_text(bounds, 3)})"


def _limit(limit: LimitEffect) -> Iterator[str]:
    """A sentence if the limit is not kept, or nearly hit."""
    allowed, bounds = limit.threshold - 1, limit.bounds
    reached = (bounds.lower if limit.at_least else bounds.upper) - 1 if bounds else 0
    near = limit.shown is Shown.KEPT and allowed != 0 and reached / allowed > _NEAR
    if near or limit.shown is not Shown.KEPT:
        found = _measured(bounds) if bounds else "not known"
        state = "nearly hit" if near else "broken" if limit.shown is Shown.BROKEN else "not shown to be kept"
        on = f" on {limit.workload}" if limit.workload else ""
        yield f"{limit.arm}, {limit.metric}{on}: {found}; the limit of {ratio_text(limit.threshold)} is {state}."


def _fenced(argv: Sequence[str]) -> Iterator[str]:
    """A command with an option per line, in a fence longer than any in it."""
    lines: list[str] = []
    for word in map(shlex.quote, argv):
        if lines and not word.startswith("--"):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", " ".join(lines)))])
    yield from (f"{fence}bash", " \\\n    ".join(lines), fence)
