"""Differences between the arms, a run's cost, and its provenance."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter

from paceline import api, core
from paceline.api import round as recorded
from paceline.api import run_status
from paceline.api.round import Round
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.manifest import Object
from paceline.core.names import ATTEMPT, TRIGGER
from paceline.core.record import finite
from paceline.core.text import count
from paceline.engines import ENGINES
from paceline.evidence.engine_differences import EngineDifferences, engine_differences
from paceline.report.model import ConfigurationView, CostView, DifferenceView
from paceline.report.read import has_incumbent, model_name, named_workload
from paceline.report.text import change

ABSENT = ""


def configuration(manifest: Object, rounds: Sequence[Round]) -> ConfigurationView:
    spec = manifest["spec"]
    arms = [arm["name"] for arm in spec["arms"]]
    requested, reported = [_asked(arm) for arm in spec["arms"]], resolved_arguments(arms, rounds)
    spoke = [column for column in reported if column]
    keys = dict.fromkeys(key for column in reported for key in column)
    differ = {key for key in keys if len({column.get(key, ABSENT) for column in spoke}) > 1}
    own = {arm["name"] for arm in spec["arms"] if arm.get("engine")}
    shared = [column for arm, column in zip(arms, reported, strict=True) if column and arm not in own]
    wrong = {key for key in differ if len({column.get(key, ABSENT) for column in shared}) > 1}
    engine = ENGINES.get(spec["engine"].get("type", ""))
    return ConfigurationView(
        arms=tuple(arms),
        asked=tuple(_differences(dict.fromkeys(key for column in requested for key in column), requested)),
        resolved=tuple(_differences([key for key in keys if key in differ], reported)),
        equal=tuple((key, spoke[0][key]) for key in sorted(keys) if key not in differ),
        unequal=(*(key for key in engine.compared if key in wrong), *_unlike(own, rounds)) if engine else (),
        commands=_commands(manifest),
    )


def imported_note(rounds: Sequence[Round]) -> Iterator[str]:
    """At most one sentence: how many rounds the run imported."""
    results = [entry for entry in rounds if not entry.error]
    if brought := sum(entry.imported for entry in results):
        yield f"{brought} of {count(len(results), 'round')} were measured without a cluster."


def own_args_notes(spec: Object) -> Iterator[str]:
    """One sentence per candidate with arguments of its own, besides its draft and shape."""
    for arm in spec["arms"]:
        if args := (*(arm.get("args") or ()), *((arm.get("custom") or {}).get("args") or ())):
            yield f"{arm['name']} ran with {' '.join(args)}, the baseline without."


def engine_differences_of(manifest: Object, rounds: Sequence[Round]) -> Mapping[str, EngineDifferences]:
    """Of each candidate with an engine of its own."""
    if not any(arm.get("engine") for arm in manifest["spec"]["arms"]):
        return {}
    run = api.run(manifest)
    return {arm.name: engine_differences(run.server, arm, rounds) for arm in run.arms if arm.engine}


def _unlike(own: Collection[str], rounds: Sequence[Round]) -> list[str]:
    """Settings that servers reported differently from the baseline; not on arms with an engine of their `own`."""
    replicates = [one for entry in rounds for one in entry.replicates if one.arm not in own]
    return _unique([f"{replicate.arm}: {difference}" for replicate in replicates for difference in replicate.differs])


def _differences(keys: Sequence[str] | dict[str, None], columns: Sequence[dict[str, str]]) -> Iterator[DifferenceView]:
    for key in keys:
        yield DifferenceView(name=key, values=tuple(column.get(key, ABSENT) for column in columns))


def _asked(arm: Object) -> dict[str, str]:
    """The spec's settings for this arm alone."""
    draft = arm.get("draft") or {}
    shapes = {
        **(arm.get("tree") or {}),
        "blockSize": arm.get("blockSize"),
        **{f"ngram.{key}": value for key, value in (arm.get("ngram") or {}).items()},
        **{f"adaptive.{key}": value for key, value in (arm.get("adaptive") or {}).items()},
    }
    facts = {
        "algorithm": draft.get("name") or draft.get("algorithm", ""),
        "draft": model_name(draft) if draft.get("source") else "",
        **{key: str(value) for key, value in shapes.items() if value is not None},
        "adaptive": "yes" if arm.get("adaptive") is not None else "",
        "depthByBatchSize": ", ".join(
            f"{depth['numSteps']} from {depth['fromBatchSize']}" for depth in arm.get("depthByBatchSize") or ()
        ),
        "custom": " ".join((arm.get("custom") or {}).get("args") or ()),
        "args": " ".join(arm.get("args") or ()),
        **_asked_engine(arm.get("engine") or {}),
    }
    return {key: value for key, value in facts.items() if value}


def _asked_engine(engine: Object) -> dict[str, str]:
    env = " ".join(variable["name"] for variable in engine.get("env") or ())
    return {
        **{f"engine.{key}": engine.get(key) or "" for key in ("type", "version", "image")},
        "engine.args": " ".join(engine.get("args") or ()),
        "engine.env": env,
    }


def resolved_arguments(arms: Sequence[str], rounds: Sequence[Round]) -> list[dict[str, str]]:
    """The arguments that each arm's servers reported; several values if rounds disagree."""
    seen: dict[str, dict[str, list[str]]] = {arm: {} for arm in arms}
    for entry in rounds:
        for replicate in entry.replicates:
            for key, value in {**replicate.resolved, **_kv_tokens(replicate, entry)}.items():
                values = seen.get(replicate.arm, {}).setdefault(key, [])
                if str(value) not in values:
                    values.append(str(value))
    return [{key: " or ".join(values) for key, values in seen[arm].items()} for arm in arms]


def _kv_tokens(replicate: recorded.ReplicateRecord, entry: Round) -> dict[str, str]:
    """The capacity of the KV cache, and what the draft takes of it: the change from the baseline's in that round."""
    mine = replicate.kv_tokens
    base = next((one.kv_tokens for one in entry.replicates if one.arm == core.BASELINE), None)
    beside = f" ({change(mine / base - 1)})" if mine and base and mine != base else ""
    return {"KV cache, tokens": f"{mine}{beside}"} if mine else {}


def _commands(manifest: Object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    try:
        run = api.run(manifest)
        servers = ((arm, core.server_of(run.server, arm)) for arm in run.arms)
        return tuple((arm.name, ENGINES[server.engine.type].argv(server, arm)) for arm, server in servers)
    except (ValueError, KeyError, AssertionError):  # of a release with more or fewer fields; no commit is pinned yet
        return ()


def cost_view(status: BenchmarkRunStatus, measured: Sequence[Round], price: float | None) -> CostView:
    """The cost of the run's own rounds; reused rounds were paid for by another run."""
    rounds = [entry for entry in measured if not entry.run]
    took = status.cost or run_status.RunCost()
    replicates = [replicate for entry in rounds for replicate in entry.replicates]
    points = [point for entry in rounds for point in entry.points]
    loads = [(point.output_tokens or 0, _rate(point)) for point in points]
    times = [(read_time(entry.start_time), read_time(entry.completion_time)) for entry in rounds]
    return CostView(
        gpu_seconds=took.gpu_seconds,
        idle_gpu_seconds=took.idle_gpu_seconds,
        server_starts=took.server_starts,
        rounds=len({entry.round for entry in rounds if not entry.error}),
        starting=sum(finite(replicate.start_seconds) or 0 for replicate in replicates),
        measuring=sum(tokens / rate for tokens, rate in loads if rate > 0),
        held=sum((end - start).total_seconds() for start, end in times if start and end),
        price=price,
    )


def _rate(point: recorded.PointRecord) -> float:
    """Tokens per second over the whole time; if unknown, those of the steady window, which is close enough for a
    sum."""
    return finite(point.steady_throughput if point.output_throughput is None else point.output_throughput) or 0.0


def notes(rounds: Sequence[Round]) -> list[str]:
    """Noteworthy facts of the rounds, without duplicates."""
    neighbours = [
        f"Round {entry.round + 1}: the node also ran {', '.join(entry.neighbours)}"
        for entry in rounds
        if entry.neighbours
    ]
    return _unique([note for entry in rounds for note in entry.notes] + neighbours)


def provenance(
    manifest: Object, status: BenchmarkRunStatus, rounds: Sequence[Round], rule: core.Gate
) -> Iterator[tuple[str, str]]:
    """Name and value, most wanted first; unknown values are left out."""
    return ((name, value) for name, value in _provenance(manifest, status, rounds, rule) if value)


def _provenance(
    manifest: Object, status: BenchmarkRunStatus, rounds: Sequence[Round], rule: core.Gate
) -> Iterator[tuple[str, str]]:
    spec = manifest["spec"]
    metadata, engine, accelerator = manifest["metadata"], spec["engine"], spec["accelerator"]
    made_by, nodes = metadata.get("annotations") or {}, accelerator.get("nodes") or 1
    yield "Run", "/".join(filter(None, [metadata.get("namespace", ""), metadata["name"]]))
    yield (
        "Purpose",
        f"{core.purpose_of(spec)}, attempt {made_by.get(ATTEMPT, 1)}, "
        f"started by {made_by.get(TRIGGER, core.Trigger.PERSON)}",
    )
    yield "Judged again", _judged_again(rounds)
    yield "Measured by", _measured_by(rounds)
    yield "Fingerprint", status.fingerprint
    yield "Target", model_name(spec["target"])
    yield (
        "Drafts",
        ", ".join(_unique(model_name(a["draft"]) for a in spec["arms"] if (a.get("draft") or {}).get("source"))),
    )
    yield "Engine", f"{engine.get('type', '')} {status.engine_version or engine.get('version', '')}".strip()
    yield "Image", engine.get("image", "")
    yield "Image that ran", ", ".join(_unique(entry.image for entry in rounds))
    yield "Image that measured", ", ".join(_unique(entry.client_image for entry in rounds))
    yield "Arguments of all arms", " ".join(engine.get("args") or ())
    yield (
        "Accelerators",
        f"{accelerator.get('count')} × {accelerator.get('product')}"
        + (f" on each of {nodes} nodes" if nodes > 1 else ""),
    )
    yield "Node", ", ".join(_unique([status.node, *(entry.node for entry in rounds)]))
    yield (
        "GPUs",
        ", ".join(
            _unique([*(entry.gpu_model for entry in rounds), *(gpu for entry in rounds for gpu in entry.gpus or ())])
        ),
    )
    yield "Driver", ", ".join(_unique(entry.driver for entry in rounds))
    yield "Around its loads", _clocks(rounds)
    yield "Started", _minute(status.start_time or min(filter(None, (entry.start_time for entry in rounds)), default=""))
    yield "Finished", _minute(status.completion_time or max((entry.completion_time for entry in rounds), default=""))
    digests = {
        name: ", then ".join(_unique(entry.datasets.get(name, "") for entry in rounds))
        for name in {name for entry in rounds for name in entry.datasets}
    }
    sizes = {name: size for entry in rounds for name, size in entry.prompts.items()}
    for one in spec["workloads"]:
        data = _data(one, digests.get(one["name"], ""), sizes.get(one["name"]), _form(one, rounds))
        yield f"Data of {named_workload(one)}", data
    yield "Seed of the servers", " or ".join(_seeds(engine.get("type", ""), rounds))
    yield "Gate", _gate(rule, has_incumbent(manifest["spec"]))


def _clocks(rounds: Sequence[Round]) -> str:
    """Clocks of all rounds and arms together, if a driver reported them."""
    seen = [one.clocks for entry in rounds for one in entry.replicates if one.clocks]
    slowest, most, limits, hottest = (
        [value for clocks in seen if (value := of(clocks)) is not None]
        for of in (
            attrgetter("sm_mhz"),
            attrgetter("most_sm_mhz"),
            attrgetter("power_limit_watts"),
            attrgetter("celsius"),
        )
    )
    return ", ".join(
        [
            *([f"SM clocks of at least {min(slowest)} of {max(most)} MHz"] if slowest and most else ()),
            *([f"power limit {' or '.join(_unique(f'{watts} W' for watts in limits))}"] if limits else ()),
            *([f"at most {max(hottest)} °C"] if hottest else ()),
        ]
    )


def _judged_again(rounds: Sequence[Round]) -> str:
    runs = [entry.run for entry in rounds if entry.run]
    return f"{len(runs)} of {len(rounds)} rounds, measured by {', '.join(_unique(runs))}" if runs else ""


def _measured_by(rounds: Sequence[Round]) -> str:
    releases = _unique(entry.paceline for entry in rounds)
    return f"Paceline {', '.join(releases)}" if releases else ""


def _data(workload: Object, digest: str, size: int | None, form: str) -> str:
    parts = [
        model_name(workload),
        f"sha256 {digest}" if digest else "",
        _sent(workload["requests"], size) if workload.get("requests") else "",
        _sampling(workload.get("temperature", "0")),
        f"at most {workload['maxTokens']} tokens each" if workload.get("maxTokens") else "",
        f"asked of the adapter {workload['adapter']}" if workload.get("adapter") else "",
        form,
        _ramp(workload),
        "arrivals in the pattern of its timestamps" if workload.get("arrivals") == core.Arrivals.REPLAYED else "",
        f"weight {workload.get('weight', 1)}",
    ]
    return ", ".join(filter(None, parts))


def _ramp(one: Object) -> str:
    if not (first := one.get("rampFrom")):
        return ""
    return f"on a ramp from {first} request{'s' if first > 1 else ''} under way to {one['concurrency']} and back"


def _form(one: Object, rounds: Sequence[Round]) -> str:
    """The required form of the answers, and how many did not have it."""
    if not one.get("responseFormat"):
        return ""
    named = (json.loads(one["responseFormat"]).get("json_schema") or {}).get("name", "")
    points = [point for entry in rounds for point in entry.points if point.workload == named_workload(one)]
    answers = sum(point.completed or 0 for point in points)
    told = f" ({sum(point.malformed or 0 for point in points)} of {answers} are not)" if answers else ""
    return f"answers that are to be JSON{f' of the schema {named}' if named else ''}{told}"


def _sent(requests: int, size: int | None) -> str:
    """`size` is None for a run of an older release, which sent the same prompts in each round."""
    if size is None:
        return f"{requests} prompts a round"
    if requests >= size:
        return f"all of its {size} prompts in each round"
    return f"{requests} of {size} prompts a round, others in each until they come again"


def _sampling(temperature: str) -> str:
    return "no temperature asked for: the server's own" if temperature == "model" else f"temperature {temperature}"


def _gate(rule: core.Gate, incumbent: bool) -> str:
    limits = "".join(f", {limit.metric} {_bound(limit)}" for limit in rule.limits)
    slowdown = f"tolerated slowdown {rule.max_slowdown:.1%}, " if incumbent else ""
    return (
        f"minimum improvement {rule.min_improvement:.1%}, regression tolerance {rule.max_regression:.1%}, {slowdown}"
        f"confidence {rule.confidence:.1%}, variance floor {rule.variance_floor:.2%}, "
        f"looks after {', '.join(map(str, rule.decide_after_rounds))} rounds{limits}"
    )


def _bound(limit: core.Limit) -> str:
    if limit.max is not None:
        return f"at most {limit.max}"
    return f"−{limit.max_decrease:.1%}" if limit.max_decrease is not None else f"+{limit.max_increase:.1%}"


def _seeds(engine: str, rounds: Sequence[Round]) -> list[str]:
    argument = ENGINES[engine].seed_argument if engine in ENGINES else ""
    resolved = [replicate.resolved for entry in rounds for replicate in entry.replicates]
    return _unique(str(arguments[argument]) for arguments in resolved if argument in arguments)


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def read_time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _minute(text: str) -> str:
    time = read_time(text)
    return f"{time:%Y-%m-%d %H:%M} {time.tzname() or ''}".strip() if time else text
