"""A manifest into core types, once and with every default filled in; and a RunSpec back into a BenchmarkRun's spec."""

import dataclasses
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic.alias_generators import to_camel

from paceline import core
from paceline.api import timeouts
from paceline.api.cache import CacheSpec
from paceline.api.deployment import BUILTIN, BenchmarkSpec, PromotionSpec, SpeculativeDeploymentSpec
from paceline.api.engine import AcceleratorSpec, EngineSpec
from paceline.api.gate import GateSpec, LimitSpec, ParitySpec
from paceline.api.pace import GOOD_SECONDS, MOST_REQUESTS, lasting
from paceline.api.parts import DraftSpec, EnvVar, SecretKey, TreeSpec
from paceline.api.pool import CandidateSpec, PoolSpec
from paceline.api.problems import InvalidManifestError, broken_rules, read
from paceline.api.prompts import DatasetSpec, PromptsSpec
from paceline.api.run import ArmSpec, BenchmarkRunSpec, RunDraft, WorkloadSpec
from paceline.api.timeouts import duration

REQUESTS = 64
MAX_TOKENS = 512
OWN_SAMPLING = "model"
"""In place of a temperature: requests name none."""
TOKEN_VARIABLE = "HF_TOKEN"
"""What huggingface_hub reads its token from."""
UNNAMED = "0" * 40
"""The commit of what is wherever its path says."""


def deployment(manifest: Mapping[str, Any]) -> core.DeploymentSpec:
    """Raises InvalidManifestError where `problems` would find something in the spec."""
    spec = read(SpeculativeDeploymentSpec, manifest)
    _refuse(broken_rules(spec, "spec"))
    benchmark, promotion = spec.benchmark or BenchmarkSpec(), spec.promotion or PromotionSpec()
    server = core.Server(
        engine=_engine(spec.engine),
        target=core.Model(source=spec.target.source, revision=spec.target.revision),
        served_name=spec.target.served_name,
        accelerator=_accelerator(spec.accelerator),
        cache=_cache(spec.cache),
        largest_concurrency=max(max(pool.concurrency) for pool in spec.pools),
    )
    return core.DeploymentSpec(
        suspend=spec.suspend,
        server=server,
        pools=tuple(_pool(pool, spec, benchmark) for pool in spec.pools),
        cache_claim=_claim(spec.cache),
        promotion=_promotion(promotion),
        run_pod_labels=benchmark.pod_labels,
        run_gpu_hours=_number(benchmark.budget.gpu_hours) if benchmark.budget else None,
        run_parity=_parity(benchmark.parity),
        run_timeouts=timeouts.timeouts(benchmark.timeouts),
        **_given(
            max_evidence_age=duration(benchmark.max_evidence_age),
            keep_revisions=spec.cache.keep_revisions,
        ),
    )


def run(manifest: Mapping[str, Any]) -> core.RunSpec:
    """Raises InvalidManifestError where `problems` would find something in the spec."""
    spec = read(BenchmarkRunSpec, manifest)
    _refuse(broken_rules(spec, "spec"))
    largest = spec.largest_concurrency or max(workload.concurrency for workload in spec.workloads)
    gate = _gate(spec.gate, decide_after_rounds=spec.gate.decide_after_rounds, arms=len(spec.arms))
    if spec.purpose is core.Purpose.SWEEP:  # all rounds are wanted, and nothing is looked at before the last
        gate = dataclasses.replace(gate, decide_after_rounds=gate.decide_after_rounds[-1:])
    server = core.Server(
        engine=_engine(spec.engine),
        target=_pinned(spec.target.source, spec.target.revision, spec.target.commit),
        served_name=spec.target.served_name,
        accelerator=_accelerator(spec.accelerator),
        cache=core.Cache(claim=spec.cache.existing_claim, host_path=spec.cache.host_path, env=_env(spec.cache.env)),
        largest_concurrency=largest,
        node_selector=spec.node_selector,
    )
    return core.RunSpec(
        pool=spec.pool,
        server=server,
        arms=tuple(_arm(arm, arm.draft) for arm in spec.arms),
        workloads=tuple(
            core.Workload(dataset=_dataset(workload, workload.concurrency), concurrency=workload.concurrency)
            for workload in spec.workloads
        ),
        gate=gate,
        purpose=spec.purpose,
        attempt=spec.attempt,
        trigger=spec.trigger.reason,
        token=spec.trigger.token,
        rounds_of=spec.rounds_of or "",
        pod_labels=spec.pod_labels,
        gpu_hours=_number(spec.budget.gpu_hours) if spec.budget else None,
        parity=_parity(spec.parity),
        timeouts=timeouts.timeouts(spec.timeouts),
    )


def run_manifest_spec(spec: core.RunSpec) -> dict[str, Any]:
    """What `run` reads back as the same RunSpec; fractions keep six decimals. What a dataset's commit was called is not
    in it: that is no part of the question."""
    server = spec.server
    engine, accelerator, cache, gate = server.engine, server.accelerator, server.cache, spec.gate
    manifest = BenchmarkRunSpec.model_validate(
        {
            "pool": spec.pool,
            "purpose": spec.purpose,
            "attempt": spec.attempt,
            "trigger": {"reason": spec.trigger, "token": spec.token},
            "roundsOf": spec.rounds_of or None,
            "target": {**_model(server.target), "servedName": server.served_name},
            "engine": {
                "name": engine.name,
                "version": engine.version,
                "image": engine.image,
                "args": engine.args,
                "trustRemoteCode": engine.trust_remote_code,
                "env": engine.env,
                "eagle3Targets": engine.eagle3_targets or None,
                "apiKeySecretRef": engine.api_key and dataclasses.asdict(engine.api_key),
                "adminKeySecretRef": engine.admin_key and dataclasses.asdict(engine.admin_key),
                "podTemplate": dict(engine.pod_template) or None,
            },
            "accelerator": {
                "product": accelerator.product,
                "count": accelerator.count,
                "tensorParallelSize": accelerator.tensor_parallel_size,
                "resourceName": accelerator.resource_name,
                "productLabel": accelerator.product_label,
                "nodes": _unless(1, accelerator.nodes),
                "topology": accelerator.topology,
                "topologyLabel": _unless(core.TOPOLOGY_LABEL, accelerator.topology_label),
                "memory": accelerator.memory,
            },
            "cache": {"existingClaim": cache.claim, "hostPath": cache.host_path, "env": cache.env},
            "nodeSelector": dict(server.node_selector),
            "largestConcurrency": server.largest_concurrency,
            "arms": tuple(_arm_manifest(arm) for arm in spec.arms),
            "workloads": tuple(
                {
                    "name": workload.dataset.name,
                    "source": workload.dataset.source,
                    "requests": workload.dataset.requests,
                    "maxTokens": workload.dataset.max_tokens,
                    "weight": int(workload.dataset.weight),
                    "requestRate": None if workload.rate is None else _decimal(workload.rate),
                    "temperature": _temperature(workload.dataset.temperature),
                    "concurrency": workload.concurrency,
                    "commit": workload.dataset.commit,
                }
                for workload in spec.workloads
            ),
            "gate": {
                "minimumImprovement": _decimal(gate.minimum_improvement),
                "regressionTolerance": _decimal(gate.regression_tolerance),
                "confidence": _decimal(gate.confidence),
                "varianceFloor": _decimal(gate.variance_floor),
                "limits": tuple(
                    {
                        "metric": limit.metric,
                        "maximumIncrease": _maybe(limit.maximum_increase),
                        "maximumDecrease": _maybe(limit.maximum_decrease),
                        "maximum": limit.maximum,
                    }
                    for limit in gate.limits
                ),
                "decideAfterRounds": gate.decide_after_rounds,
            },
            "podLabels": dict(spec.pod_labels),
            "budget": None if spec.gpu_hours is None else {"gpuHours": _decimal(spec.gpu_hours)},
            "parity": spec.parity
            and {
                "samples": spec.parity.samples,
                "maxTokens": spec.parity.max_tokens,
                "nearTie": _decimal(spec.parity.near_tie),
            },
            "timeouts": timeouts.manifest(spec.timeouts),
        }
    )
    return manifest.model_dump(mode="json", by_alias=True, exclude_none=True)


def _refuse(found: Iterable[Any]) -> None:
    if problems := list(found):
        raise InvalidManifestError(problems)


def _pool(pool: PoolSpec, spec: SpeculativeDeploymentSpec, benchmark: BenchmarkSpec) -> core.PoolSpec:
    datasets = benchmark.datasets or tuple(DatasetSpec(name=name, source=f"builtin://{name}") for name in BUILTIN)
    candidates = (_arm(candidate, candidate.draft or spec.draft) for candidate in pool.candidates or ())
    return core.PoolSpec(
        name=pool.name,
        replicas=pool.replicas,
        arms=(core.Arm(name=core.BASELINE), *sorted(candidates, key=lambda arm: arm.name)),
        workloads=tuple(
            core.Workload(dataset=_dataset(dataset, concurrency), concurrency=concurrency)
            for concurrency in sorted(pool.concurrency)
            for dataset in datasets
            if pool.datasets is None or dataset.name in pool.datasets
            # What arrives at a rate is measured once: how many are under way follows from it.
            if dataset.request_rate is None or concurrency == max(pool.concurrency)
        ),
        gate=_gate(
            spec.gate,
            pool.gate,
            decide_after_rounds=benchmark.decide_after_rounds,
            arms=1 + len(pool.candidates or ()),
        ),
    )


def _dataset(dataset: PromptsSpec, concurrency: int) -> core.Dataset:
    return core.Dataset(
        name=dataset.name,
        source=dataset.source,
        requests=max(
            dataset.requests or _usual_requests(dataset), 0 if dataset.request_rate else core.WAVES * concurrency
        ),
        max_tokens=dataset.max_tokens or MAX_TOKENS,
        weight=float(dataset.weight),
        rate=_number(dataset.request_rate),
        temperature=None if dataset.temperature == OWN_SAMPLING else float(dataset.temperature or 0),
        commit=dataset.commit if isinstance(dataset, WorkloadSpec) else None,
        **_given(revision=dataset.revision if isinstance(dataset, DatasetSpec) else None),
    )


def _usual_requests(dataset: PromptsSpec) -> int:
    """Where nothing is said; at a rate a minute of them."""
    rate = _number(dataset.request_rate)
    return REQUESTS if rate is None else min(MOST_REQUESTS, max(REQUESTS, lasting(GOOD_SECONDS, rate)))


def _gate(*gates: GateSpec | None, decide_after_rounds: tuple[int, ...] | None, arms: int) -> core.Gate:
    """The later of two gates wins, key by key."""
    said: dict[str, Any] = {}
    for gate in gates:
        if gate is not None:
            said |= _given(
                minimum_improvement=_number(gate.minimum_improvement),
                regression_tolerance=_number(gate.regression_tolerance),
                confidence=_number(gate.confidence),
                variance_floor=_number(gate.variance_floor),
                limits=None if gate.limits is None else tuple(map(_limit, gate.limits)),
            )
    return core.Gate(**said, decide_after_rounds=decide_after_rounds or core.default_looks(arms))


def _limit(limit: LimitSpec) -> core.Limit:
    return core.Limit(
        metric=limit.metric,
        maximum_increase=_number(limit.maximum_increase),
        maximum_decrease=_number(limit.maximum_decrease),
        maximum=limit.maximum,
    )


def _parity(parity: ParitySpec | None) -> core.Parity | None:
    if parity is None:
        return None
    return core.Parity(
        samples=parity.samples, **_given(max_tokens=parity.max_tokens, near_tie=_number(parity.near_tie))
    )


def _engine(engine: EngineSpec) -> core.Engine:
    return core.Engine(
        name=engine.name,
        version=engine.version,
        image=engine.image,
        args=engine.args,
        trust_remote_code=engine.trust_remote_code,
        env=_env(engine.env),
        eagle3_targets=engine.eagle3_targets or (),
        api_key=_secret(engine.api_key_secret_ref),
        admin_key=_secret(engine.admin_key_secret_ref),
        pod_template=engine.pod_template or {},
    )


def _secret(ref: SecretKey | None) -> core.SecretKey | None:
    return core.SecretKey(name=ref.name, key=ref.key) if ref else None


def _accelerator(accelerator: AcceleratorSpec) -> core.Accelerator:
    return core.Accelerator(
        product=accelerator.product,
        count=accelerator.count,
        tensor_parallel_size=accelerator.tensor_parallel_size or accelerator.count * (accelerator.nodes or 1),
        resource_name=accelerator.resource_name,
        product_label=accelerator.product_label,
        topology=accelerator.topology,
        memory=accelerator.memory,
        **_given(nodes=accelerator.nodes, topology_label=accelerator.topology_label),
    )


def _cache(cache: CacheSpec) -> core.Cache:
    env = _env(cache.env)
    if secret := cache.token_secret_ref:
        env += ({"name": TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}},)
    return core.Cache(
        claim=cache.claim.name if cache.claim else cache.existing_claim,
        host_path=cache.host_path,
        env=env,
        security_context=cache.security_context.model_dump(by_alias=True, exclude_none=True)
        if cache.security_context
        else {},
    )


def _claim(cache: CacheSpec) -> core.ClaimTemplate | None:
    if (claim := cache.claim) is None:
        return None
    return core.ClaimTemplate(
        name=claim.name,
        size=claim.size,
        storage_class_name=claim.storage_class_name,
        **_given(access_modes=claim.access_modes),
    )


def _promotion(promotion: PromotionSpec) -> core.PromotionSpec:
    return core.PromotionSpec(
        mode=promotion.mode,
        until_decided=promotion.until_decided,
        **_given(
            revision_history_limit=promotion.revision_history_limit,
            progress_deadline=duration(promotion.progress_deadline),
        ),
    )


def _draft(draft: DraftSpec | None) -> core.Draft | None:
    if draft is None:
        return None
    return core.Draft(algorithm=draft.algorithm, name=draft.name, model=_head(draft))


def _head(draft: DraftSpec) -> core.Model | None:
    if not draft.source:
        return None
    if isinstance(draft, RunDraft):
        return _pinned(draft.source, draft.revision, draft.commit)
    return core.Model(source=draft.source, revision=draft.revision)


def _pinned(source: str, revision: str, commit: str | None) -> core.Model:
    """Of a run. What is on the claim already is found by its path: a person need not say which commit that is."""
    at_its_path = UNNAMED if source.startswith("pvc://") else None
    return core.Model(source=source, revision=revision, commit=commit or at_its_path)


def _arm(arm: CandidateSpec | ArmSpec, draft: DraftSpec | None) -> core.Arm:
    ngram, adaptive, custom = arm.ngram, arm.adaptive, arm.custom
    return core.Arm(
        name=arm.name,
        draft=_draft(draft),
        tree=_tree(arm.tree),
        block_size=arm.block_size,
        ngram=None if ngram is None else core.Ngram(**ngram.model_dump()),
        adaptive=None if adaptive is None else core.Adaptive(**adaptive.model_dump()),
        schedule=tuple(core.Depth(**depth.model_dump()) for depth in arm.schedule or ()),
        custom=None if custom is None else core.Custom(args=custom.args),
        args=arm.args,
    )


def _tree(tree: TreeSpec | None) -> core.Tree | None:
    if tree is None:
        return None
    return core.Tree(num_steps=tree.num_steps, top_k=tree.top_k, num_draft_tokens=tree.num_draft_tokens)


def _env(env: Iterable[EnvVar]) -> tuple[Mapping[str, Any], ...]:
    return tuple(variable.model_dump(by_alias=True, exclude_none=True) for variable in env)


def _model(model: core.Model) -> dict[str, Any]:
    return {"source": model.source, "revision": model.revision, "commit": model.commit}


def _arm_manifest(arm: core.Arm) -> dict[str, Any]:
    draft, tree = arm.draft, arm.tree
    return {
        "name": arm.name,
        "draft": draft
        and {"algorithm": draft.algorithm, "name": draft.name, **(_model(draft.model) if draft.model else {})},
        "tree": tree and {"numSteps": tree.num_steps, "topK": tree.top_k, "numDraftTokens": tree.num_draft_tokens},
        "blockSize": arm.block_size,
        "ngram": arm.ngram and _camel(dataclasses.asdict(arm.ngram)),
        "adaptive": arm.adaptive and _camel(dataclasses.asdict(arm.adaptive)),
        "schedule": tuple(_camel(dataclasses.asdict(depth)) for depth in arm.schedule) or None,
        "custom": arm.custom and {"args": arm.custom.args},
        "args": arm.args,
    }


def _camel(values: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in values.items()}


def _given(**values: Any) -> dict[str, Any]:
    """Only what was said: the rest is left to the defaults of core."""
    return {key: value for key, value in values.items() if value is not None}


def _unless(default: Any, value: Any) -> Any:
    """Not written where it is the default: the fingerprint of a question must not move with a new field."""
    return None if value == default else value


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _temperature(value: float | None) -> str | None:
    return OWN_SAMPLING if value is None else _unless("0", _decimal(value))


def _maybe(value: float | None) -> str | None:
    return None if value is None else _decimal(value)


def _decimal(value: float) -> str:
    text = f"{Decimal(repr(value)):.6f}"
    return text.rstrip("0").rstrip(".")
