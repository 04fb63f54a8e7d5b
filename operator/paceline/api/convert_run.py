"""Converts a BenchmarkRun's spec to core types and back; and a server as served, kept beside its rendering."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from paceline import core
from paceline.api.convert import (
    MOST_PARSED,
    OWN_SAMPLING,
    arm_of,
    dataset_of,
    fields_set,
    gate_of,
    hours_of,
    pinned,
    refuse_broken,
)
from paceline.api.draft import ShapeSpec
from paceline.api.engine import EngineChange, EngineSpec
from paceline.api.gate import BudgetSpec, GateSpec
from paceline.api.model import plain
from paceline.api.pod import EnvVar, Toleration
from paceline.api.problems import broken_rules, read_spec, sent
from paceline.api.run import (
    ArmSpec,
    BenchmarkRunSpec,
    RunCache,
    RunDraft,
    RunGate,
    RunSearch,
    RunSweep,
    RunTarget,
    ServedSpec,
    ServerSpec,
    WorkloadSpec,
)
from paceline.core.text import plain_decimal


def run(manifest: Mapping[str, Any]) -> core.RunSpec:
    """Convert a BenchmarkRun. Raises InvalidManifestError if `problems` would find something in the spec."""
    return _run(sent(manifest))


@lru_cache(maxsize=MOST_PARSED)
def _run(text: str) -> core.RunSpec:
    spec = read_spec(BenchmarkRunSpec, text)
    refuse_broken(broken_rules(spec, text))
    server = _server(spec, max(workload.concurrency for workload in spec.workloads))
    return core.RunSpec(
        pool=spec.pool,
        server=server,
        arms=tuple(arm_of(arm, arm.draft, server.engine) for arm in spec.arms),
        workloads=tuple(map(_workload, spec.workloads)),
        gate=_gate_of(spec),
        purpose=core.Purpose.SWEEP if spec.sweep else core.Purpose.SEARCH if spec.search else core.Purpose.GATE,
        pod_labels=spec.pod_labels,
        queue_name=spec.queue_name or "",
        gpu_hours=hours_of(spec.budget),
        parity=spec.gate.parity if spec.gate else None,
        timeouts=spec.timeouts or core.Timeouts(),
        rounds_of=(spec.gate and spec.gate.rounds_of) or "",
        measured=spec.measured,
    )


def served(spec: Mapping[str, Any]) -> tuple[core.Server, core.Arm]:
    """What `served_spec` wrote. Raises InvalidManifestError if this release cannot read it."""
    return _served(json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=MOST_PARSED)
def _served(text: str) -> tuple[core.Server, core.Arm]:
    spec = read_spec(ServedSpec, text)
    server = _server(spec, 1)
    return server, arm_of(spec.arm, spec.arm.draft, server.engine)


def _server(spec: ServerSpec, largest: int) -> core.Server:
    """`largest`: the largest concurrency, if the spec names none."""
    return core.Server(
        engine=spec.engine.whole(),
        target=pinned(spec.target.source, spec.target),
        served_name=spec.target.name_in_requests,
        accelerator=spec.accelerator,
        cache=core.Cache(claim=spec.cache.claim_name, host_path=spec.cache.host_path),
        max_concurrency=spec.max_concurrency or largest,
        node_selector=spec.node_selector,
        tolerations=plain(spec.tolerations),
    )


def _workload(spec: WorkloadSpec) -> core.Workload:
    return core.Workload(dataset=dataset_of(spec, spec.concurrency, spec), concurrency=spec.concurrency)


def run_manifest_spec(spec: core.RunSpec) -> dict[str, Any]:
    """What `run` reads back as the same RunSpec; fractions keep six decimals. The revision of a dataset's commit is
    left out: it is not part of the question."""
    written = BenchmarkRunSpec(
        pool=spec.pool,
        measured=spec.measured,
        **_server_fields(spec.server),
        arms=tuple(_arm_spec(arm, spec.server.engine) for arm in spec.arms),
        workloads=tuple(map(_workload_spec, spec.workloads)),
        **_member(spec),
        budget=None if spec.gpu_hours is None else BudgetSpec(gpu_hours=plain_decimal(spec.gpu_hours)),
        timeouts=None if spec.timeouts == core.Timeouts() else spec.timeouts,
        pod_labels=dict(spec.pod_labels),
        queue_name=spec.queue_name or None,
    )
    return written.model_dump(mode="json", by_alias=True, exclude_none=True)


def served_spec(server: core.Server, arm: core.Arm) -> dict[str, Any]:
    """A server as it is served, in the form of a run's spec."""
    server = replace(server, accelerator=server.accelerator.unpriced)
    written = ServedSpec(**_server_fields(server), arm=_arm_spec(arm, server.engine))
    return written.model_dump(mode="json", by_alias=True, exclude_none=True)


def _server_fields(server: core.Server) -> dict[str, Any]:
    target, engine = server.target, server.engine
    return {
        "target": RunTarget(
            source=target.source, revision=target.revision, commit=target.commit, served_name=server.served_name
        ),
        "engine": EngineSpec(
            type=engine.type,
            version=engine.version,
            image=engine.image,
            args=engine.args,
            trust_remote_code=engine.trust_remote_code,
            eagle3_targets=engine.eagle3_targets or None,
            env=_variables(engine.env),
            api_key_secret_ref=engine.api_key,
            admin_key_secret_ref=engine.admin_key,
            pod_template=dict(engine.pod_template) or None,
        ),
        "accelerator": server.accelerator,
        "cache": RunCache(claim_name=server.cache.claim, host_path=server.cache.host_path),
        "node_selector": dict(server.node_selector),
        "tolerations": tuple(Toleration.model_validate(one) for one in server.tolerations),
        "max_concurrency": server.max_concurrency,
    }


def _arm_spec(arm: core.Arm, engine: core.Engine) -> ArmSpec:
    written: dict[str, Any] = {name: getattr(arm, name) or None for name in ShapeSpec.model_fields} | {"args": arm.args}
    written["engine"] = EngineChange.between(engine, arm.engine) if arm.engine else None
    return ArmSpec(draft=_run_draft(arm.draft) if arm.draft else None, **written)


def _run_draft(draft: core.Draft) -> RunDraft:
    if draft.model is None:
        return RunDraft(algorithm=draft.algorithm, name=draft.name)
    head = draft.model
    return RunDraft(
        algorithm=draft.algorithm, name=draft.name, source=head.source, revision=head.revision, commit=head.commit
    )


def _workload_spec(workload: core.Workload) -> WorkloadSpec:
    dataset = workload.dataset
    return WorkloadSpec(
        name=dataset.name,
        source=dataset.source,
        commit=dataset.commit,
        requests=dataset.requests,
        min_requests=dataset.min_requests,
        turns=dataset.turns if dataset.turns > 1 else None,
        max_tokens=dataset.max_tokens,
        weight=int(dataset.weight),
        temperature=OWN_SAMPLING if dataset.temperature is None else plain_decimal(dataset.temperature),
        adapter=dataset.adapter or None,
        response_format=dataset.response_format or None,
        slo=dataset.slo,
        concurrency=workload.concurrency,
        request_rate=None if dataset.rate is None else plain_decimal(dataset.rate),
        ramp_from=dataset.ramp_from,
        arrivals=dataset.arrivals if dataset.rate else None,
    )


def _gate_of(spec: BenchmarkRunSpec) -> core.Gate:
    """The gate that judges the rounds. A sweep measures all rounds, and is judged only after the last."""
    looks = core.default_looks(len(spec.arms))
    if spec.sweep:
        last = spec.sweep.rounds or looks[-1]
        return core.Gate(decide_after_rounds=(last,), **fields_set(spec.sweep, "confidence"))
    if spec.search:
        limit = core.Limit(metric="retractions", max=spec.search.retractions)
        return core.Gate(decide_after_rounds=looks, limits=(limit,) if spec.search.retractions else ())
    return gate_of(spec.gate, arms=len(spec.arms))


def _member(spec: core.RunSpec) -> dict[str, Any]:
    """The member of the run's spec that says its purpose: `gate`, `search` or `sweep`."""
    rule = spec.gate
    if spec.purpose is core.Purpose.SWEEP:
        return {"sweep": RunSweep(confidence=rule.confidence, rounds=rule.decide_after_rounds[-1])}
    if spec.purpose is core.Purpose.SEARCH:
        return {"search": RunSearch(retractions=rule.retractions)}
    values = {name: getattr(rule, name) for name in GateSpec.model_fields}
    values["max_slowdown"] = rule.max_slowdown if rule.max_slowdown != core.Gate().max_slowdown else None
    return {"gate": RunGate(**values, parity=spec.parity, rounds_of=spec.rounds_of or None)}


def _variables(env: Iterable[Mapping[str, Any]]) -> tuple[EnvVar, ...]:
    return tuple(EnvVar.model_validate(variable) for variable in env)
