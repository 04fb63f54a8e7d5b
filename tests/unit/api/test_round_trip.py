"""A RunSpec goes into a manifest and comes back: every one that the operator can make. Fractions have at most six
decimals, as in any manifest."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paceline import core
from paceline.api import run, run_manifest_spec
from paceline.engines import ENGINES

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
            return {"depth_by_batch_size": draw(st.sampled_from(SCHEDULED))}
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
    rate = draw(st.none() | st.sampled_from([0.5, 8.0, 33.333]))
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
        rate=rate,
        ramp_from=None if rate or concurrency == 1 else draw(st.none() | st.integers(1, concurrency - 1)),
        temperature=draw(st.none() | st.sampled_from([0.0, 0.7, 2.0])),
        slo=draw(st.sampled_from([None, core.Slo(ttft=0.5), core.Slo(itl=0.033), core.Slo(ttft=1.5, itl=0.05)])),
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
            type=engine,
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
            **(TPU if ENGINES[engine].capabilities.resource else {}),
        ),
        cache=core.Cache(claim=claim, host_path=None if claim else f"/{draw(words)}"),
        max_concurrency=draw(st.integers(64, 128)),
        node_selector=draw(labels),
    )


gates = st.builds(
    core.Gate,
    min_improvement=millionths,
    max_regression=millionths,
    max_slowdown=millionths,
    confidence=millionths.map(lambda x: round(0.5 + x / 2.1, 6)),
    limits=st.sampled_from(
        [
            (),
            (core.Limit(metric="p95TTFT", max_increase=0.2), core.Limit(metric="p99ITL", max_increase=1.5)),
            (core.Limit(metric="kvTokens", max_decrease=0.1), core.Limit(metric="retractions", max=0)),
        ]
    ),
    decide_after_rounds=st.sets(st.integers(2, 20), min_size=1, max_size=4).map(lambda s: tuple(sorted(s))),
)


@st.composite
def runs(draw: st.DrawFn) -> core.RunSpec:
    server = draw(servers())
    arms = st.lists(
        candidates(server.engine.type, server.cache.claim), min_size=1, max_size=4, unique_by=lambda arm: arm.name
    )
    return core.RunSpec(
        pool=draw(words),
        server=server,
        arms=(core.Arm(name=core.BASELINE), *draw(arms)),
        workloads=tuple(draw(st.lists(workloads(), min_size=1, max_size=4, unique_by=lambda one: one.dataset.name))),
        gate=draw(gates),
        pod_labels=draw(labels),
        timeouts=core.Timeouts(
            **draw(st.sampled_from([{}, {"start": 3600.0}, {"workload": 1800.0}, {"start": 60.0, "workload": 1.0}]))
        ),
    )


@given(runs())
def test_a_run_comes_back_from_its_manifest(spec: core.RunSpec) -> None:
    assert run({"spec": run_manifest_spec(spec)}) == spec
