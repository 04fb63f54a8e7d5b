"""A manifest becomes core types, once, with every default filled in; a RunSpec goes into a manifest and comes back."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paceline import core
from paceline.api import deployment, run, run_manifest_spec
from paceline.api.problems import InvalidManifestError
from paceline.engines import ENGINES

EXAMPLE = Path(__file__).parents[3] / "examples" / "qwen3-coder-next.yaml"


@pytest.fixture
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return loaded


def test_the_example_is_what_was_published(manifest: dict[str, Any]) -> None:
    spec = deployment(manifest)
    head = core.Draft(algorithm="EAGLE3", model=core.Model(source="hf://thoughtworks/Qwen3-Coder-Next-Eagle3"))
    wide = core.Arm(name="wide", draft=head, tree=core.Tree(num_steps=3, top_k=4, num_draft_tokens=8))
    narrow = core.Arm(name="narrow", draft=head, tree=core.Tree(num_steps=5, top_k=1, num_draft_tokens=6))
    latency, throughput = spec.pools

    assert spec.server.target == core.Model(source="hf://Qwen/Qwen3-Coder-Next")
    assert spec.server.accelerator == core.Accelerator(product="NVIDIA-H200", count=4, tensor_parallel_size=4)
    assert spec.server.engine == core.Engine(
        name="SGLang",
        version="0.5.6",
        image="registry.example.com/sglang:0.5.6-tails-mpt",
        args=("--attention-backend=triton", "--mem-fraction-static=0.85"),
        trust_remote_code=True,
        eagle3_targets=("Qwen3NextForCausalLM",),
    )
    assert spec.cache_claim == core.ClaimTemplate(name="models", size="400Gi")
    assert latency.arms == (core.Arm(name="baseline"), wide)
    assert throughput.arms == (core.Arm(name="baseline"), narrow, wide), "fewer draft tokens first"
    assert [workload.name for workload in throughput.workloads] == ["code@32", "swe@32", "terminal@32", "chat@32"]
    assert {(w.dataset.requests, w.dataset.max_tokens) for w in latency.workloads} == {(64, 512)}
    assert {(w.dataset.requests, w.dataset.max_tokens) for w in throughput.workloads} == {(160, 512)}


def test_what_is_not_said_is_taken_from_core(manifest: dict[str, Any]) -> None:
    spec = deployment(manifest)
    assert spec.pools[0].gate == core.Gate()
    assert spec.promotion == core.PromotionSpec()
    assert spec.max_evidence_age == timedelta(hours=720)
    assert not spec.suspend


def test_a_pools_gate_overrides_key_by_key(manifest: dict[str, Any]) -> None:
    manifest["spec"]["gate"] = {"minimumImprovement": "0.1", "confidence": "0.9"}
    manifest["spec"]["benchmark"] = {"decideAfterRounds": [2, 4]}
    latency, throughput = deployment(manifest).pools
    assert latency.gate == core.Gate(minimum_improvement=0.1, confidence=0.9, decide_after_rounds=(2, 4))
    assert throughput.gate == core.Gate(minimum_improvement=0.02, confidence=0.9, decide_after_rounds=(2, 4))


def test_a_candidates_own_draft_takes_the_place_of_the_default(manifest: dict[str, Any]) -> None:
    manifest["spec"]["pools"][0]["candidates"] = [{"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {}}]
    assert deployment(manifest).pools[0].arms[1] == core.Arm(
        name="ngram", draft=core.Draft(algorithm="NGRAM"), ngram=core.Ngram()
    )


def test_durations_are_gos(manifest: dict[str, Any]) -> None:
    manifest["spec"]["promotion"] = {"progressDeadline": "1h30m5s", "mode": "Manual", "untilDecided": "Nothing"}
    assert deployment(manifest).promotion == core.PromotionSpec(
        mode=core.PromotionMode.MANUAL,
        until_decided=core.UntilDecided.NOTHING,
        progress_deadline=timedelta(hours=1, minutes=30, seconds=5),
    )


def test_the_hubs_token_goes_by_reference(manifest: dict[str, Any]) -> None:
    manifest["spec"]["cache"] = {"existingClaim": "shared", "tokenSecretRef": {"name": "hub"}}
    spec = deployment(manifest)
    assert spec.cache_claim is None
    assert spec.server.cache.claim == "shared"
    assert spec.server.cache.env == (
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    )


def test_six_requests_are_enough_at_concurrency_one(manifest: dict[str, Any]) -> None:
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code", "requests": 6}]}
    manifest["spec"]["pools"].pop()
    assert deployment(manifest).pools[0].workloads[0].dataset.requests == 6


def test_at_concurrency_32_there_are_never_fewer_than_five_times_as_many(manifest: dict[str, Any]) -> None:
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code", "requests": 6}]}
    latency, throughput = deployment(manifest).pools
    assert [workload.dataset.requests for workload in latency.workloads] == [6]
    assert [workload.dataset.requests for workload in throughput.workloads] == [160]


def test_at_a_rate_there_are_requests_for_a_minute_unless_it_is_said(manifest: dict[str, Any]) -> None:
    def requests(rate: str, **said: Any) -> int:
        chat = {"name": "chat", "source": "builtin://chat", "requestRate": rate, **said}
        manifest["spec"]["benchmark"] = {"datasets": [chat]}
        return deployment(manifest).pools[0].workloads[0].dataset.requests

    assert [requests(rate) for rate in ("0.5", "1", "8", "33.333")] == [64, 64, 480, 2000]
    assert requests("5000") == 100_000  # the most there can be: 20 s
    assert requests("8", requests=160) == 160


@pytest.mark.parametrize(
    ("rate", "requests", "says"),
    [
        ("8", 159, "at 8 a second 160, better 480; got 159"),
        ("3.2", 63, "at 3.2 a second 64, better 192; got 63"),
        ("0.07", 1, "at 0.07 a second 2, better 5; got 1"),
        ("5000.1", None, "at 5000.1 a second 100002, better 300006; got 100000"),
    ],
)
def test_fewer_requests_than_arrive_in_20_seconds_are_refused(
    manifest: dict[str, Any], rate: str, requests: int | None, says: str
) -> None:
    chat = {"name": "chat", "source": "builtin://chat", "requestRate": rate, "requests": requests}
    manifest["spec"]["benchmark"] = {"datasets": [chat]}
    with pytest.raises(InvalidManifestError) as refused:
        deployment(manifest)
    (problem,) = refused.value.problems
    assert problem.path == "spec.benchmark.datasets[0].requests"
    assert problem.message.endswith(says)


@pytest.mark.parametrize(
    ("said", "temperature", "kept"),
    [
        (None, 0.0, None),
        ("0", 0.0, None),
        ("0.0", 0.0, None),  # the default, however it is written, moves no question
        ("0.7", 0.7, "0.7"),
        ("2", 2.0, "2"),
        ("model", None, "model"),
    ],
)
def test_the_temperature_is_the_datasets(
    manifest: dict[str, Any], said: str | None, temperature: float | None, kept: str | None
) -> None:
    manifest["spec"]["benchmark"] = {
        "datasets": [{"name": "code", "source": "builtin://code", **({"temperature": said} if said else {})}]
    }
    workload = deployment(manifest).pools[0].workloads[0]
    assert workload.dataset.temperature == temperature
    asked = manifest["spec"]
    by_hand = {
        **{key: asked[key] for key in ("target", "engine", "accelerator")},
        "pool": "mine",
        "cache": {"hostPath": "/models"},
        "arms": [{"name": "baseline"}, {"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {}}],
        "workloads": [{"name": "code", "source": "builtin://code", "concurrency": 1, "temperature": said or "0"}],
    }
    spec = run({"spec": by_hand})
    assert spec.workloads[0].dataset.temperature == temperature
    assert run_manifest_spec(spec)["workloads"][0].get("temperature") == kept


def test_an_slo_is_the_datasets_else_the_pools_in_one_form(manifest: dict[str, Any]) -> None:
    """However it is written, a run has it in milliseconds: its fingerprint is of what is meant."""
    manifest["spec"]["pools"][0]["slo"] = {"ttft": "0.5s", "itl": "50.0ms"}
    code, chat = ({"name": name, "source": f"builtin://{name}"} for name in ("code", "chat"))
    manifest["spec"]["benchmark"] = {"datasets": [code, {**chat, "slo": {"ttft": "2s"}}]}
    latency, throughput = deployment(manifest).pools
    assert [workload.dataset.slo for workload in latency.workloads] == [
        core.Slo(ttft=0.5, itl=0.05),
        core.Slo(ttft=2.0),
    ]
    assert [workload.dataset.slo for workload in throughput.workloads] == [None, core.Slo(ttft=2.0)]

    asked = manifest["spec"]
    by_hand = {
        **{key: asked[key] for key in ("target", "engine", "accelerator")},
        "pool": "mine",
        "cache": {"hostPath": "/models"},
        "arms": [{"name": "baseline"}, {"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {}}],
        "workloads": [{**code, "concurrency": 1, "slo": {"ttft": "0.5s", "itl": "50.0ms"}}, {**chat, "concurrency": 1}],
    }
    written = [workload.get("slo") for workload in run_manifest_spec(run({"spec": by_hand}))["workloads"]]
    assert written == [{"ttft": "500ms", "itl": "50ms"}, None]


def test_what_arrives_at_a_rate_is_measured_once(manifest: dict[str, Any]) -> None:
    chat = {"name": "chat", "source": "configMap://prompts/chat.jsonl", "requests": 200, "requestRate": "0.5"}
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code"}, chat]}
    manifest["spec"]["pools"] = [manifest["spec"]["pools"][0] | {"concurrency": [1, 8]}]
    (pool,) = deployment(manifest).pools
    assert [workload.name for workload in pool.workloads] == ["code@1", "code@8", "chat@0.5/s"]
    assert (pool.workloads[2].rate, pool.workloads[2].concurrency) == (0.5, 8)


def test_a_run_made_by_hand_needs_little(manifest: dict[str, Any]) -> None:
    asked = manifest["spec"]
    by_hand = {
        "pool": "mine",
        "target": asked["target"],
        "engine": asked["engine"],
        "accelerator": asked["accelerator"],
        "cache": {"hostPath": "/models"},
        "arms": [{"name": "baseline"}, {"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {}}],
        "workloads": [{"name": "code", "source": "builtin://code", "concurrency": 32}],
    }
    spec = run({"spec": by_hand})
    assert spec.workloads == (
        core.Workload(
            dataset=core.Dataset(name="code", source="builtin://code", requests=160, max_tokens=512), concurrency=32
        ),
    )
    assert (spec.gate, spec.attempt, spec.purpose) == (core.Gate(), 1, core.Purpose.GATE)
    assert spec.server.largest_concurrency == 32


# Every RunSpec that the operator can make. Fractions have at most six decimals, as in any manifest.

words = st.from_regex(r"[a-z][a-z0-9]{0,10}", fullmatch=True)
named = st.from_regex(r"[0-9a-f]{40}", fullmatch=True)
commits = st.none() | named
hub = st.builds(core.Model, source=st.builds("hf://{}/{}".format, words, words), revision=words, commit=commits)


def models(claim: str | None) -> st.SearchStrategy[core.Model]:
    """On the hub, or on the cache's own claim if there is one."""
    there = st.builds(core.Model, source=st.builds(f"pvc://{claim}/{{}}".format, words), commit=named)
    return hub | there if claim else hub


labels = st.dictionaries(words, words, max_size=2)
arguments = st.lists(st.builds("--{}".format, words), max_size=2).map(tuple)
env = st.lists(
    st.fixed_dictionaries({"name": words, "value": words})
    | st.fixed_dictionaries({"name": words, "valueFrom": st.just({"secretKeyRef": {"name": "s", "key": "k"}})}),
    max_size=2,
    unique_by=lambda variable: variable["name"],
).map(tuple)
millionths = st.integers(1, 999_999).map(lambda n: round(n / 1_000_000, 6))


@st.composite
def trees(draw: st.DrawFn) -> core.Tree:
    steps, top_k = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    widest = 1 + top_k + (steps - 1) * top_k**2
    tokens = steps + 1 if top_k == 1 else draw(st.integers(2, widest))
    return core.Tree(num_steps=steps, top_k=top_k, num_draft_tokens=tokens)


TPU = {
    "resource_name": "google.com/tpu",
    "product_label": "cloud.google.com/gke-tpu-accelerator",
    "topology": "2x2",
}
CHAINS = (core.Tree(num_steps=2, top_k=1, num_draft_tokens=3), core.Tree(num_steps=5, top_k=1, num_draft_tokens=6))
SCHEDULED = (
    (core.Depth(from_batch_size=1, num_steps=5), core.Depth(from_batch_size=17, num_steps=0)),
    tuple(core.Depth(from_batch_size=2**i, num_steps=6 - i) for i in range(6)),
)
HEADED = ("EAGLE", "EAGLE3", "NEXTN", "MTP", "STANDALONE", "DFLASH", "DSPARK")
small = st.none() | st.integers(2, 8)


@st.composite
def shapes(draw: st.DrawFn, algorithm: str, engine: str) -> dict[str, Any]:
    can = ENGINES[engine].capabilities
    match algorithm:
        case "NGRAM":
            breadth = draw(small) if can.ngram_breadth else None
            least = draw(small)
            most = None if least is None else draw(st.none() | st.integers(least, 12))
            return {"ngram": core.Ngram(num_draft_tokens=draw(small), breadth=breadth, min_match=least, max_match=most)}
        case core.CUSTOM:
            return {"custom": core.Custom(args=draw(arguments))}
        case _ if algorithm in can.adaptive and draw(st.booleans()):
            return {"adaptive": core.Adaptive(num_steps=draw(small))}
        case _ if algorithm in can.schedule and draw(st.booleans()):
            return {"schedule": draw(st.sampled_from(SCHEDULED))}
        case "DFLASH" | "DSPARK":
            return {"block_size": draw(st.integers(1, 64))}
    return {"tree": draw(trees() if can.trees else st.sampled_from(CHAINS))}


@st.composite
def candidates(draw: st.DrawFn, engine: str, claim: str | None) -> core.Arm:
    algorithm = draw(st.sampled_from(sorted(ENGINES[engine].capabilities.algorithms)))
    needed = algorithm in ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH")
    model = draw(models(claim) if needed else st.none() | models(claim)) if algorithm in HEADED else None
    return core.Arm(
        name=draw(words.filter(lambda name: name != core.BASELINE)),
        draft=core.Draft(algorithm=algorithm, model=model, name="UNO" if algorithm == core.CUSTOM else None),
        args=draw(arguments),
        **draw(shapes(algorithm, engine)),
    )


OF_THE_HUB = "hf://datasets/team/prompts/code.jsonl"


@st.composite
def workloads(draw: st.DrawFn) -> core.Workload:
    concurrency = draw(st.integers(1, 64))
    source = draw(
        st.sampled_from(["builtin://code", "configMap://team/code.jsonl", "pvc://team/code.json", OF_THE_HUB])
    )
    dataset = core.Dataset(
        name=draw(words),
        source=source,
        commit=draw(st.none() | st.just("a" * 40)) if source == OF_THE_HUB else None,
        requests=core.WAVES * concurrency + draw(st.integers(700, 800)),
        max_tokens=draw(st.integers(3, 4096)),
        weight=float(draw(st.integers(1, 9))),
        rate=draw(st.none() | st.sampled_from([0.5, 8.0, 33.333])),
        temperature=draw(st.none() | st.sampled_from([0.0, 0.7, 2.0])),
        slo=draw(st.sampled_from([None, core.Slo(ttft=0.5), core.Slo(itl=0.0333), core.Slo(ttft=1.5, itl=0.05)])),
    )
    return core.Workload(dataset=dataset, concurrency=concurrency)


keys = st.none() | st.builds(core.SecretKey, name=words, key=words)
templates = st.sampled_from([{}, {"spec": {"hostIPC": True, "containers": [{"name": "server", "tty": True}]}}])


@st.composite
def servers(draw: st.DrawFn) -> core.Server:
    engine = draw(st.sampled_from(sorted(ENGINES)))
    claim = draw(st.none() | words)
    nodes = draw(st.integers(1, 4))
    return core.Server(
        engine=core.Engine(
            name=engine,
            version="0.5.23",
            image=draw(words),
            args=draw(arguments),
            trust_remote_code=draw(st.booleans()),
            env=draw(env),
            eagle3_targets=draw(st.sampled_from([(), ("Qwen3NextForCausalLM",)])),
            api_key=draw(keys),
            admin_key=draw(keys) if ENGINES[engine].capabilities.admin_key else None,
            pod_template=draw(templates),
        ),
        target=draw(models(claim)),
        served_name=draw(words),
        accelerator=core.Accelerator(
            product=draw(words),
            count=8,
            tensor_parallel_size=draw(st.integers(1, 8 * nodes)),
            nodes=nodes,
            memory=draw(st.none() | st.just("80Gi")),
            **({"topology_label": "tpu/shape"} if draw(st.booleans()) else {}),
            **(TPU if ENGINES[engine].capabilities.resource else {}),
        ),
        cache=core.Cache(claim=claim, host_path=None if claim else f"/{draw(words)}", env=draw(env)),
        largest_concurrency=draw(st.integers(64, 128)),
        node_selector=draw(labels),
    )


gates = st.builds(
    core.Gate,
    minimum_improvement=millionths,
    regression_tolerance=millionths,
    confidence=millionths.map(lambda x: round(0.5 + x / 2.1, 6)),
    variance_floor=millionths,
    limits=st.sampled_from(
        [
            (),
            (core.Limit(metric="p95TTFT", maximum_increase=0.2), core.Limit(metric="p99ITL", maximum_increase=1.5)),
            (core.Limit(metric="kvTokens", maximum_decrease=0.1), core.Limit(metric="retractions", maximum=0)),
        ]
    ),
    decide_after_rounds=st.sets(st.integers(2, 20), min_size=1, max_size=4).map(lambda s: tuple(sorted(s))),
)


@st.composite
def runs(draw: st.DrawFn) -> core.RunSpec:
    server = draw(servers())
    arms = st.lists(
        candidates(server.engine.name, server.cache.claim), min_size=1, max_size=4, unique_by=lambda arm: arm.name
    )
    return core.RunSpec(
        pool=draw(words),
        server=server,
        arms=(core.Arm(name=core.BASELINE), *draw(arms)),
        workloads=tuple(draw(st.lists(workloads(), min_size=1, max_size=4, unique_by=lambda one: one.dataset.name))),
        gate=draw(gates),
        attempt=draw(st.integers(1, 99)),
        trigger=draw(st.sampled_from(core.Trigger)),
        token=draw(st.just("") | words),
        pod_labels=draw(labels),
        timeouts=core.Timeouts(
            **draw(st.sampled_from([{}, {"start": 3600.0}, {"workload": 1800.0}, {"start": 60.0, "workload": 1.0}]))
        ),
    )


@given(runs())
def test_a_run_comes_back_from_its_manifest(spec: core.RunSpec) -> None:
    assert run({"spec": run_manifest_spec(spec)}) == spec
