"""What `paceline plan` prints: costs, what they buy, steps, capacity and assumptions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from paceline import api
from paceline.cli.manifests import RUN
from paceline.cli.plan_power import Detectable, noises, smallest, smallest_table
from paceline.cli.rows import HEAD, cost_span, row, total
from paceline.cli.too_slow import too_slow
from paceline.cli.validate import wrong
from paceline.core import (
    DeploymentSpec,
    Gate,
    Parity,
    PoolSettings,
    PromotionMode,
    Purpose,
    Workload,
    purpose_of,
    source_run,
)
from paceline.core.manifest import Manifest
from paceline.core.text import count
from paceline.plan.costs import Assumptions, EvidenceCost
from paceline.plan.forecast import ALL_FASTER, Forecast, forecast
from paceline.plan.run.next_requests import size_for
from paceline.preflight.promotion import losses


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRange:
    """The likely and the worst case, and the source of their numbers."""

    lower: Assumptions
    upper: Assumptions
    starts: str
    streams: str


def spec_of(manifest: Manifest) -> DeploymentSpec:
    """The deployment's spec; for a run, the spec of a deployment with one pool that serves nothing."""
    if manifest["kind"] != RUN:
        return api.deployment(manifest)
    run = api.run(manifest)
    workloads = tuple(map(_in_full, run.workloads)) if run.purpose is not Purpose.GATE else run.workloads
    pool = PoolSettings(name=run.pool, replicas=0, arms=run.arms, workloads=workloads, gate=run.gate)
    return DeploymentSpec(
        suspend=False,
        server=run.server,
        pools=(pool,),
        cache_claim=None,
        run_parity=run.parity,
        run_timeouts=run.timeouts,
    )


def _in_full(workload: Workload) -> Workload:
    """The workload with all of its requests in every round."""
    return replace(workload, dataset=replace(workload.dataset, min_requests=None))


def costs(
    manifest: Manifest, lower: Forecast, upper: Forecast, bounds: CostRange, existing: Sequence[Manifest] = ()
) -> Iterator[str]:
    """The table of costs, what they buy, the steps, and the assumptions."""
    spec, purpose = _as_asked(spec_of(manifest), upper), purpose_of(manifest["spec"])
    yield f"{manifest['metadata']['name']}: {_in_short(spec, lower, upper, bounds, purpose)}\n"
    yield f"{'POOL':<20} {HEAD}"
    pairs = [(pool, lower.pools[pool], upper.pools[pool]) for pool in lower.pools]
    for pool, least, most in pairs:
        reused = f"  reuses {least.reused}" if least.reused else ""
        yield f"{pool:<20} {row(least, most)}{reused}"
        if least.search and most.search and least.search.jobs < least.jobs:
            yield f"{'  of which the search':<20} {row(least.search, most.search)}"
    prefetches = sum(kind == "Job" for (kind, _), _ in lower.steps)
    least, most = total([cost for _, cost, _ in pairs]), total([cost for _, _, cost in pairs])
    yield f"{'all':<20} {row(least, most, prefetches)}  {'with the prefetch' if prefetches else ''}".rstrip()
    yield ""
    if purpose is Purpose.GATE:
        yield "Likely: every candidate is shown to be faster at the first look. At worst: none is decided at any look."
    if purpose is Purpose.SWEEP:
        yield "A sweep measures all of its rounds and promotes nothing."
    if purpose is Purpose.SEARCH or any(least.search for _, least, _ in pairs):
        yield "A search has the rounds that it would need if all candidates were equally fast: it may need others."
    if source := source_run(manifest["spec"]):
        yield f"Rounds of {source} (gate.roundsOf) are judged again, and not counted if --cluster has that run."
    yield from (f"Not measured: {why}" for why in lower.never)
    if manifest["kind"] == RUN and api.run(manifest).measured:
        yield "Not measured: spec.measured has its rounds, which are judged again if evidence.imported allows it."
    shown = _shown(manifest, spec, lower, upper, existing, bounds.lower)
    yield from smallest_table(shown)
    if lower.stalled:
        yield f"\nStalled: {lower.stalled}"
    if lower.steps:
        yield "\nSteps, if all goes well:"
    for number, line in enumerate(_steps(lower), 1):
        yield f"{number:>4}. {line}"
    if lower.steps and spec.promotion.mode is PromotionMode.MANUAL:
        yield "      Then it waits for a person's `promote` request (spec.promotion.mode is Manual)."
    measured = [pool for pool in spec.pools if upper.pools[pool.name].jobs]
    if measured:
        yield from _assumed(measured, spec.run_parity, bounds, lower.pools)
        yield from noises(shown)
        at = "spec.timeouts" if manifest["kind"] == RUN else "spec.benchmark.timeouts"
        yield from once_promoted(spec) if purpose is Purpose.GATE else ()
        yield from too_slow(measured, spec.run_timeouts, at, bounds.upper)


def _as_asked(spec: DeploymentSpec, upper: Forecast) -> DeploymentSpec:
    """The spec with the arms, looks and compared answers of its runs, which a changed spec has more of."""
    asked = upper.asked
    pools = (
        replace(pool, arms=asked[pool.name].arms, gate=asked[pool.name].gate)
        if pool.name in asked and not pool.search
        else pool
        for pool in spec.pools
    )
    parity = next((run.compared_outputs for run in asked.values()), spec.run_parity)
    return replace(spec, pools=tuple(pools), run_parity=parity)


def _in_short(spec: DeploymentSpec, lower: Forecast, upper: Forecast, bounds: CostRange, purpose: Purpose) -> str:
    """The answer in one sentence."""
    if not any(cost.jobs for cost in upper.pools.values()):
        return "nothing is measured"
    looks = sorted({cost.jobs for cost in lower.pools.values() if cost.jobs})
    price = spec.server.accelerator.price_per_hour
    first = f"; the first verdict comes after round {looks[0]}" if purpose is Purpose.GATE else ""
    first = "; the budget ends before the first look" if all(_too_few(pool, lower) for pool in spec.pools) else first
    return (
        f"likely {_hours(lower, price)}, at worst {_hours(upper, price)}; a server starts in "
        f"{bounds.lower.start_seconds:.0f} s and answers one request with {bounds.lower.stream:.0f} tokens/s{first}"
    )


def _too_few(pool: PoolSettings, lower: Forecast) -> bool:
    """Whether the rounds do not reach the first look, for example because of a budget."""
    cost = lower.pools[pool.name]
    return not (cost.search or cost.reused) and 0 < cost.jobs < pool.gate.decide_after_rounds[0]


def _hours(forecast: Forecast, price: str | None) -> str:
    """GPU-hours, what they cost, and wall-clock hours if the pools' rounds run one after another."""
    costs = [cost for cost in forecast.pools.values() if cost.accelerators]
    seconds = sum(cost.accelerator_seconds / cost.accelerators for cost in costs)
    used = sum(cost.accelerator_seconds for cost in costs) / 3600
    money = "" if price is None else f" for {used * float(price):.2f}"
    return f"{used:.1f} GPU-hours{money} ({seconds / 3600:.1f} h)"


def way_out_of_room(
    manifest: Manifest,
    existing: Sequence[Manifest],
    assumed: Assumptions,
    crowded: Forecast | None,
    free: int | None,
    now: datetime,
) -> Iterator[str]:
    """Changes that avoid waiting forever; each is tried in a simulation first."""
    if crowded is None or not crowded.waiting:
        return
    spec = manifest["spec"]
    lending = {**manifest, "spec": {**spec, "benchmark": {**spec.get("benchmark", {}), "capacityPolicy": "Borrow"}}}
    if manifest["kind"] != RUN and not wrong(lending):
        lent = forecast(lending, existing, ALL_FASTER, assumed, free, now)
        if not lent.waiting and not lent.stalled:
            yield "  Way out: spec.benchmark.capacityPolicy: Borrow measures on GPUs of one of the pool's servers."
            return
    several = manifest["kind"] != RUN and any(pool.get("replicas", 1) > 1 for pool in spec["pools"])
    yield f"  Way out: more GPUs{', or fewer replicas of the pools' if several else ''}."


def _shown(
    manifest: Manifest,
    spec: DeploymentSpec,
    lower: Forecast,
    upper: Forecast,
    existing: Sequence[Manifest],
    assumed: Assumptions,
) -> dict[str, Detectable]:
    """Pool → the smallest difference that its verdict can show; empty for a Sweep, which has no verdict."""
    if purpose_of(manifest["spec"]) is not Purpose.GATE:
        return {}
    measured = [pool for pool in spec.pools if lower.pools[pool.name].jobs and upper.pools[pool.name].jobs]
    return {
        pool.name: smallest(pool, lower.pools[pool.name], upper.pools[pool.name], existing, assumed)
        for pool in measured
    }


def capacity(manifest: Manifest, upper: Forecast, crowded: Forecast | None, free: int | None) -> Iterator[str]:
    """How many GPUs are needed, and what waits if only `free` are free."""
    spec = spec_of(manifest)
    largest = max(cost.accelerators for cost in upper.pools.values())
    if manifest["kind"] == RUN and not largest:
        return
    if manifest["kind"] == RUN:
        yield f"\nA round takes {count(largest, 'GPU')} on one node."
    else:
        beside = f", a round takes {largest} on one node besides them" if largest else ""
        yield f"\nServers take {count(servers_gpus(spec), 'GPU')} in all{beside}."
    if crowded is None:
        return
    yield f"With {free} free:"
    yield from (f"  {message}" for message in crowded.waiting or ("everything finds room in the end",))
    if crowded.most_at_once:
        yield f"  {crowded.most_at_once} runs take turns: there is no room for a round of each at the same time"


def servers_gpus(spec: DeploymentSpec) -> int:
    """GPUs of all servers: one server if an autoscaler decides, like a Deployment without a number."""
    servers = sum(1 if pool.replicas is None else pool.replicas for pool in spec.pools)
    return servers * spec.server.accelerator.count * spec.server.accelerator.nodes


def _steps(forecast: Forecast) -> Iterator[str]:
    """Consecutive changes with the same reason are one step."""
    for why, group in groupby(forecast.steps, key=lambda step: step[1]):
        keys = [key for key, _ in group]
        kinds = ", ".join(dict.fromkeys(kind for kind, _ in keys))
        yield f"{kinds} {min((name for _, name in keys), key=len)}: {why}"


def _assumed(
    pools: Sequence[PoolSettings], parity: Parity | None, bounds: CostRange, likely: Mapping[str, EvidenceCost]
) -> Iterator[str]:
    lower, upper = bounds.lower, bounds.upper
    starts, streams = cost_span(lower.start_seconds, upper.start_seconds), cost_span(upper.stream, lower.stream)
    alone = " that is alone" if lower.shared else ""
    yield "\nAssumed:"
    yield f"  A server is ready {starts} s after its start: {bounds.starts}."
    yield f"  A request{alone} gets {streams} tokens a second: {bounds.streams}."
    yield "  Every answer has maxTokens tokens. Time on one arm:"
    for pool in pools:
        for workload in pool.workloads:
            minutes = cost_span(lower.of_workload(workload) / 60, upper.of_workload(workload) / 60, 1)
            over = f" over {workload.dataset.requests / workload.rate:.0f} s" if workload.rate else ""
            load = f"{workload.dataset.requests} requests{over} of at most {workload.dataset.max_tokens} tokens"
            size = lower.sizes.get(workload.dataset.source)
            load += _later(workload, likely[pool.name].requests.get(workload.name), pool.gate, size)
            again = _again(workload, pool.gate.decide_after_rounds[-1], size)
            yield f"    {pool.name:<16} {workload.name:<16} {load}: {minutes} min{again}"
    if parity:
        minutes = cost_span(lower.of_parity(parity) / 60, upper.of_parity(parity) / 60, 1)
        load = f"{count(parity.samples, 'prompt')}, one after another, of at most {parity.max_tokens} tokens"
        yield f"    {'each pool':<16} {'parity':<16} {load}: {minutes} min"


def _later(workload: Workload, requests: int | None, gate: Gate, size: int | None) -> str:
    """` (35 after the first round, if its baseline allows)`; "" if all rounds send as many."""
    if requests is None or requests == workload.dataset.requests:
        return ""
    if requests < workload.dataset.requests:
        return f" ({requests} after the first round, if its baseline allows)"
    asked = f" and the set has {size_for(requests, gate)}" if size is None else ""
    return f" ({requests} after the first round, if the noise of its baseline asks for them{asked})"


def _again(workload: Workload, rounds: int, size: int | None) -> str:
    """The round from which a built-in dataset repeats its prompts; "" for a dataset of unknown size."""
    if size is None:
        return ""
    first = size // workload.dataset.requests
    return f"; its {size} prompts repeat from round {first + 1} on" if first < rounds else ""


def once_promoted(spec: DeploymentSpec) -> Iterator[str]:
    """What clients lose after a promotion."""
    changes = losses(spec.server, [arm for pool in spec.pools for arm in pool.arms])
    yield from (["\nOnce a candidate is promoted:", *(f"  {change}." for change in changes)] if changes else ())
