"""Builds the report's view of a BenchmarkRun."""

from collections.abc import Iterator, Sequence

from paceline import __version__, core
from paceline.api.round import rounds_of
from paceline.api.run_status import BenchmarkRunStatus, CandidateVerdict, Result, RunProgress, RunVerdict
from paceline.api.status import Condition
from paceline.core.manifest import Object
from paceline.core.record import finite, from_status
from paceline.core.text import count, error_text, in_all_texts, printable_lines
from paceline.report import by_request, facts, measured, read, searched
from paceline.report.classes import class_views
from paceline.report.crossover import crossover_view
from paceline.report.deployment_model import DeploymentView
from paceline.report.model import MEANS, PROVISIONAL, CandidateView, EffectView, Report, RunView, Shown
from paceline.report.outputs import outputs_view
from paceline.report.over_loads import over_loads
from paceline.report.spent import time_view
from paceline.report.text import capital, interval_text, ratio_text
from paceline.report.trade_off import trade_offs
from paceline.report.under_way import provisional


def build_report(manifests: Sequence[Object], title: str = "", deployments: Sequence[DeploymentView] = ()) -> Report:
    """Raises ValueError for a manifest that is not a BenchmarkRun; a run without a status is valid. `deployments` come
    first."""
    found = runs(manifests)
    named = sorted({run.served_name for run in found}) if not deployments else [one.name for one in deployments]
    return Report(title=title or ", ".join(named), paceline=__version__, runs=found, deployments=tuple(deployments))


def runs(manifests: Sequence[Object]) -> tuple[RunView, ...]:
    """Removes control sequences of terminals and browsers here: names and errors come from other people."""
    return tuple(_read(in_all_texts(manifest, printable_lines)) for manifest in manifests)


def _read(manifest: Object) -> RunView:
    read.refuse(manifest)
    try:
        return run(manifest)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        name = manifest["metadata"]["name"]
        raise ValueError(f"{name}: is not as the API server stores a BenchmarkRun: {error_text(error)}") from error


def run(manifest: Object) -> RunView:
    status = from_status(BenchmarkRunStatus, manifest.get("status"))
    searching = searched.search(manifest, status) if searched.searches(manifest) else None
    if searching:
        manifest = searched.measured_first(manifest, status)
    spec = manifest["spec"]
    rule, rounds = read.gate(spec), rounds_of(manifest)
    arms = tuple(arm["name"] for arm in spec["arms"])
    workloads = tuple(read.named_workload(w) for w in spec["workloads"])
    sweeps = core.purpose_of(spec) is core.Purpose.SWEEP
    asks_nothing = sweeps or searching is not None
    if not asks_nothing and rounds and not (status.verdict or any(_ended(status))):
        status = provisional(spec, rule, workloads, status, rounds)
    judged = arms if read.has_incumbent(spec) else arms[1:]
    candidates = tuple(
        _candidate(name, status, None if asks_nothing else rule) for name in judged if name != core.INCUMBENT
    )
    differ = facts.engine_differences_of(manifest, rounds)
    crossing = None if searching else crossover_view(spec, rule, rounds)
    emulated = bool(status.emulated) or any(entry.emulated for entry in rounds)
    verdict = status.verdict or RunVerdict()
    replicates = tuple(measured.replicates(workloads, rounds))
    values = tuple(measured.values(arms, workloads, rounds))
    values = (*values, *measured.money(spec, values))
    swept = crossing if sweeps else None
    head, _, rest = swept.sentence.partition(": ") if swept else ("", "", "")
    if searching:
        head, rest = searched.heading(verdict), searched.search_view(searching, status)
    elif read.has_incumbent(spec):
        head, rest = _beside(verdict, candidates)
    series = tuple(measured.series(arms, workloads, rounds))
    return RunView(
        name=manifest["metadata"]["name"],
        namespace=manifest["metadata"].get("namespace", ""),
        pool=spec["pool"],
        served_name=spec["target"].get("servedName", ""),
        outcome=verdict.outcome or _without_outcome(status),
        winner=verdict.winner or "",
        decision=_decision(status, head),
        found=" ".join(
            [
                _found(status, candidates, rest),
                *facts.own_args_notes(spec),
                *(f"{found.in_words(arm)}." for arm, found in differ.items() if found.named),
                *facts.imported_note(rounds),
            ]
        ),
        advice=capital(verdict.crossing),
        speed_up=_speed_up(verdict.winner or "", candidates),
        emulated=emulated,
        asked=searched.ASKED if searching else NOTHING_ASKED if sweeps else _asked(rule, read.has_incumbent(spec)),
        arms=arms,
        workloads=workloads,
        candidates=candidates,
        limits=tuple(measured.limit_effects(spec, rule, workloads, rounds)),
        outputs=outputs_view(spec, status),
        values=values,
        counts=tuple(measured.counts(arms, workloads, rounds)),
        positions=tuple(measured.positions(arms, workloads, rounds)),
        deepest={arm["name"]: arm["tree"]["numSteps"] + 1 for arm in spec["arms"] if arm.get("tree")},
        goodput=tuple(by_request.goodput(spec, arms, rounds)),
        prompts=tuple(by_request.prompts(arms, workloads, rounds)),
        lengths=tuple(by_request.lengths(arms, workloads, rounds)),
        contexts=tuple(by_request.contexts(arms, rounds)),
        trade_offs=tuple(trade_offs(spec, values)),
        over_loads=tuple(over_loads(spec, values, of_a_search=bool(searching))),
        crossover=crossing,
        classes=tuple(class_views(spec, status)),
        search=searching,
        speeds=dict(measured.speed_series(spec, series)),
        series=series,
        replicates=replicates,
        unused=tuple(measured.unused(replicates, workloads)),
        notes=(
            *(f"{arm}: {'; '.join(found.sentences)}." for arm, found in differ.items() if found.named),
            *facts.notes(rounds),
        ),
        noise=finite(status.noise),
        configuration=facts.configuration(searched.with_first_arms(manifest) if searching else manifest, rounds),
        cost=facts.cost_view(status, rounds, read.price(spec)),
        time=time_view(spec, rounds, emulated=emulated),
        provenance=tuple(facts.provenance(manifest, status, rounds, rule)),
    )


def _without_outcome(status: BenchmarkRunStatus) -> str:
    if status.verdict and status.verdict.winner:
        return "Found"
    return "Ended" if any(_ended(status)) else "Measuring"


NOTHING_ASKED = "Nothing is asked of a candidate: a Sweep shows where speculation pays and promotes no candidate."


def _asked(rule: core.Gate, incumbent: bool) -> str:
    looks = ", ".join(str(n) for n in rule.decide_after_rounds)
    slower = f", beside the incumbent all of them above {ratio_text(1 - rule.max_slowdown)}" if incumbent else ""
    return (
        f"Asked for: the mean above {ratio_text(1 + rule.min_improvement)} and every workload above "
        f"{ratio_text(1 - rule.max_regression)}{slower}, with {rule.confidence:.0%} confidence in the whole decision, "
        f"looked at after {looks} rounds."
    )


# Candidates.


def _candidate(name: str, status: BenchmarkRunStatus, rule: core.Gate | None) -> CandidateView:
    verdict = next((one for one in status.arm_verdicts or () if one.arm == name), CandidateVerdict(arm=name))
    effects = sorted(_effects(verdict, status.results or (), rule), key=lambda effect: effect.workload not in MEANS)
    return CandidateView(
        name=name,
        outcome=verdict.outcome,
        reason=verdict.reason,
        effects=tuple(effects),
        margin=finite(verdict.margin),
    )


def _effects(of: CandidateVerdict, results: Sequence[Result], rule: core.Gate | None) -> Iterator[EffectView]:
    """Provisional bounds decide nothing, so their effects are shown as open."""
    for result in results:
        bounds = read.ordered_bounds(result.ratio, result.lower, result.upper)
        if result.arm == of.arm and bounds:
            threshold = _threshold(result.workload, rule) if rule else None
            yield EffectView(
                workload=result.workload,
                bounds=bounds,
                threshold=threshold,
                shown=Shown.OPEN
                if of.outcome == PROVISIONAL
                else _above(bounds, 1 if threshold is None else threshold),
                tokens=read.ordered_bounds(result.tokens, result.tokens_lower, result.tokens_upper),
            )


def _threshold(workload: str, rule: core.Gate) -> float:
    return 1 + rule.min_improvement if workload in MEANS else 1 - rule.max_regression


def _above(bounds: core.Bounds, threshold: float) -> Shown:
    if bounds.lower > threshold:
        return Shown.KEPT
    return Shown.BROKEN if bounds.upper < threshold else Shown.OPEN


def _speed_up(winner: str, candidates: Sequence[CandidateView]) -> core.Bounds | None:
    asked = [one for one in candidates if one.name == winner] if winner else candidates
    means = [one.mean.bounds for one in asked if one.mean]
    return means[0] if len(asked) == 1 and means else None


# The decision and its basis.

DECISIONS = {"Reject": "Keep the baseline", "Inconclusive": "No decision"}


def _decision(status: BenchmarkRunStatus, told: str) -> str:
    """`told`: the sentence of a Search or a Sweep, if any; here and below."""
    verdict = status.verdict or RunVerdict()
    if told:
        return told
    if verdict.outcome == "Promote":
        return f"Promote {verdict.winner}"
    if verdict.outcome == "Error":
        return f"Error: {verdict.reason}" if verdict.reason else "Error"
    if verdict.outcome:
        return DECISIONS.get(verdict.outcome, verdict.outcome)
    ended = next(_ended(status), None)
    return "No decision yet" if ended is None else "Ended without a verdict" if ended.type == "Failed" else "Measured"


def _beside(verdict: RunVerdict, candidates: Sequence[CandidateView]) -> tuple[str, str]:
    """Heading and basis if nothing may replace the incumbent: speed-ups over the new baseline are not the basis."""
    if verdict.outcome != "Reject":
        return "", ""
    return "Keep what serves", f"{'; '.join(f'{one.name}: {one.reason}' for one in candidates if one.reason)}."


def _found(status: BenchmarkRunStatus, candidates: Sequence[CandidateView], told: str) -> str:
    verdict = status.verdict or RunVerdict()
    best = _best(verdict.winner or "", candidates)
    if verdict.outcome == "Error":
        return f"the measurement failed, which says nothing about the candidates: {verdict.message}"
    if told:
        return told
    if verdict.outcome and best:
        return f"{'' if verdict.winner else f'{best.name} '}{_speed(best)}."
    if verdict.outcome:
        whys = [f"{one.name}: {one.reason}" for one in candidates if one.reason]
        return f"{'; '.join(whys) or verdict.message or count(verdict.rounds or 0, 'round') + ' measured'}."
    if ended := next(_ended(status), None):
        return ended.message or ended.reason
    after = count((status.progress or RunProgress()).round or 0, "round")
    means = [(one, one.mean.bounds) for one in candidates if one.mean]
    so_far = [f"{one.name} {ratio_text(bounds.ratio)} ({interval_text(bounds)}) {one.outcome}" for one, bounds in means]
    return f"{after} so far{': ' if so_far else ''}{', '.join(so_far)}."


def _best(winner: str, candidates: Sequence[CandidateView]) -> CandidateView | None:
    """The winner, else the candidate with the highest mean."""
    means = {one.mean.bounds.ratio: one for one in candidates if one.mean and winner in ("", one.name)}
    return means[max(means)] if means else None


def _speed(one: CandidateView) -> str:
    """For example 1.37x (1.36–1.37); worst workload chat@1 1.18x (1.16–1.19)."""
    said = [("", one.mean), (f"worst workload {one.worst.workload} " if one.worst else "", one.worst)]
    return "; ".join(f"{name}{ratio_text(e.bounds.ratio)} ({interval_text(e.bounds)})" for name, e in said if e)


def _ended(status: BenchmarkRunStatus) -> Iterator[Condition]:
    """The condition that ended the run, if any."""
    for kind in ("Failed", "Complete"):
        yield from (one for one in status.conditions if one.type == kind and one.status == "True")
