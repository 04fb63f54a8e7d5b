"""Whatever a Deployment has: it is in the rendered pod, or a comment names it."""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.migration import SGLANG, VLLM, Manifest, container, served

from paceline.cli.import_ import text
from paceline.cli.importing.pod import DEFAULTS
from paceline.cli.importing.resource import Options, imported
from paceline.engines.images import PUBLISHED

OPTIONS = Options(engine_version="0.5.23", product="NVIDIA-H200", gpus=2)
COMMANDS = {
    "SGLang": ["python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"],
    "vLLM": ["vllm", "serve", "Qwen/Qwen3-8B"],
}
FLAGS = {
    "SGLang": [
        ["--host", "0.0.0.0"], ["--port", "8080"], ["--tp", "2"], ["--revision", "v1"], ["--trust-remote-code"],
        ["--mem-fraction-static=0.8"], ["--enable-metrics"], ["--of-a-fork", "7"], ["--random-seed", "3"],
        ["--served-model-name", "qwen"], ["--attention-backend", "flashinfer"], ["--dp-size", "1"],
        ["--speculative-algorithm", "NGRAM"], ["--speculative-accept-threshold-acc", "0.5"],
        ["--chat-template", "/own/a.jinja"], ["--download-dir", "/tmp/x"],
    ],
    "vLLM": [
        ["--host", "0.0.0.0"], ["--port", "8080"], ["-tp", "2"], ["--revision", "v1"], ["--trust-remote-code"],
        ["--gpu_memory_utilization", "0.8"], ["--max-model-len=8192"], ["--of-a-fork", "7"], ["--seed", "3"],
        ["--served-model-name", "qwen", "second"], ["--no-enable-prefix-caching"], ["--disable-log-stats"],
        ["--compilation-config.mode", "3"], ["--speculative-config", '{"method":"ngram","num_speculative_tokens":4}'],
    ],
}  # fmt: skip
VARIABLES = [
    {"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "HF_TOKEN", "value": "hf_x"}, {"name": "HF_HOME", "value": "/c"},
    {"name": "EMPTY"}, {"name": "MY_PASSWORD", "value": "x"}, {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
    {"name": "PACELINE_API_KEY", "value": "x"}, {"name": "HF_HUB_OFFLINE", "value": "1"},
    {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
]  # fmt: skip
SOURCES: list[Manifest] = [
    {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"hostPath": {"path": "/data"}},
    {"persistentVolumeClaim": {"claimName": "c"}}, {"configMap": {"name": "m"}},
    {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "m"}}]}},
]  # fmt: skip
PATHS = ("/dev/shm", "/root/.cache/huggingface", "/models", "/own", "/jit", "/ctl/in", "/c")
NAMES = ("shm", "dshm", "models", "tmp", "ctl-in", "cache", "own")
POD: list[tuple[str, Any]] = [
    ("hostIPC", True), ("hostPID", True), ("hostNetwork", True), ("hostname", "h"), ("restartPolicy", "Always"),
    ("priorityClassName", "system-node-critical"), ("priorityClassName", "mine"), ("runtimeClassName", "nvidia"),
    ("shareProcessNamespace", False), ("terminationGracePeriodSeconds", 600), ("nodeName", "n"),
    ("nodeSelector", {"rack": "a"}), ("dnsPolicy", "None"), ("serviceAccountName", "s"), ("nominated", "x"),
    ("tolerations", [{"key": "dedicated", "operator": "Exists"}]), ("schedulerName", "default-scheduler"),
    ("securityContext", {"fsGroup": 1}), ("affinity", {"podAntiAffinity": {}}),
]  # fmt: skip
ON_THE_CONTAINER: list[tuple[str, Any]] = [
    ("workingDir", "/w"), ("tty", True), ("securityContext", {"privileged": True}), ("imagePullPolicy", "Always"),
    ("lifecycle", {"preStop": {"sleep": {"seconds": 9}}}), ("terminationMessagePolicy", "FallbackToLogsOnError"),
    ("envFrom", [{"secretRef": {"name": "all"}}]), ("stdin", True),
    ("livenessProbe", {"httpGet": {"path": "/live", "port": 1}, "periodSeconds": 7, "failureThreshold": 99}),
    ("startupProbe", {"exec": {"command": ["up"]}, "initialDelaySeconds": 5, "timeoutSeconds": 9}),
]  # fmt: skip
LABELS = st.dictionaries(
    st.sampled_from(["app", "paceline.dev/pool", "app.kubernetes.io/managed-by", "job-name", "example.com/team"]),
    st.just("v"),
    max_size=3,
)


@st.composite
def deployments(draw: st.DrawFn) -> Manifest:
    engine = draw(st.sampled_from(("SGLang", "vLLM")))
    flags = draw(st.lists(st.sampled_from(FLAGS[engine]), unique_by=lambda words: words[0], max_size=8))
    volumes = [
        {"name": name, **draw(st.sampled_from(SOURCES))}
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    ]
    paths = draw(st.permutations(PATHS))
    mounts = [{"name": volume["name"], "mountPath": path} for volume, path in zip(volumes, paths, strict=False)]
    ports = [{"containerPort": port} for port in draw(st.sets(st.sampled_from((30000, 8000, 55555)), max_size=2))]
    server: Manifest = {
        "name": "engine",
        "image": draw(st.sampled_from((f"{PUBLISHED[engine]}:latest", "example.com/own:1"))),
        "command": COMMANDS[engine] + [word for flag in flags for word in flag],
        "env": draw(st.lists(st.sampled_from(VARIABLES), unique_by=lambda one: one["name"], max_size=5)),
        "volumeMounts": mounts,
        "ports": ports,
        "resources": draw(st.sampled_from(({}, {"limits": {"nvidia.com/gpu": 2, "cpu": "8"}}))),
        **dict(draw(st.lists(st.sampled_from(ON_THE_CONTAINER), max_size=3))),
    }
    others = draw(st.lists(st.sampled_from(("server", "proxy", "client")), unique=True, max_size=2))
    first = draw(st.lists(st.sampled_from(("first", "server")), unique=True, max_size=1))
    pod = {
        **dict(draw(st.lists(st.sampled_from(POD), max_size=5))),
        "containers": [server, *({"name": name, "image": "i", "volumeMounts": mounts[:1]} for name in others)],
        "initContainers": [{"name": name, "image": "i", "volumeMounts": mounts[:1]} for name in first],
        "volumes": volumes,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "old", "labels": draw(LABELS)},
        "spec": {
            "replicas": 2,
            "minReadySeconds": draw(st.sampled_from((0, 9))),
            "strategy": draw(st.sampled_from(({}, {"type": "Recreate"}))),
            "template": {"metadata": {"labels": draw(LABELS), "annotations": draw(LABELS)}, "spec": pod},
        },
    }


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(deployments())
def test_everything_is_in_the_pod_or_in_a_comment(deployment: Manifest) -> None:
    outcome = imported(deployment, OPTIONS)
    printed = text(deployment, outcome)
    comments = "\n".join(line for line in printed.splitlines() if line.startswith("#"))
    assert yaml.safe_load(printed) == outcome.manifest
    if any(problem.path.startswith(("spec.cache", "spec.target")) for problem in outcome.problems):
        return
    template = served(outcome.manifest)
    assert [what for what in had(deployment) if not (has(template, *what) or named(comments, what[-1]))] == []
    assert [mount for mount in mounts(template) if mount["name"] not in names(template["spec"]["volumes"])] == []


def had(deployment: Manifest) -> list[tuple[str, Any, str]]:
    """What the Deployment has: kind, what the pod would have, what a comment would name."""
    template, engine = deployment["spec"]["template"], deployment["spec"]["template"]["spec"]["containers"][0]
    pod, words = template["spec"], [word for word in engine["command"] if word.startswith("-") and word != "-m"]
    return [
        *(("flag", word, word.partition("=")[0]) for word in words),
        *(("env", one["name"], one["name"]) for one in engine["env"]),
        *(("volume", one, f"[{one['name']}]") for one in pod["volumes"]),
        *(("token", one, "serviceAccountToken") for one in pod["volumes"] if has_token(one)),
        *(("mount", one, one["mountPath"]) for one in engine["volumeMounts"]),
        *(("container", one["name"], one["name"]) for one in pod["containers"][1:]),
        *(("first", one["name"], one["name"]) for one in pod["initContainers"]),
        *(("pod", (k, v), k) for k, v in pod.items() if k not in ("containers", "initContainers", "volumes")),
        *(("server", (key, value), key) for key, value in engine.items() if key in dict(ON_THE_CONTAINER)),
        *(("metadata", ("labels", key), key) for key in template["metadata"]["labels"]),
        *(("metadata", ("annotations", key), key) for key in template["metadata"]["annotations"]),
        *(("field", key, key) for key in deployment["metadata"]["labels"]),
        *(("field", key, f"spec.{key}") for key in ("strategy", "minReadySeconds") if deployment["spec"][key]),
        *(("port", one["containerPort"], str(one["containerPort"])) for one in engine["ports"]),
    ]


def has(template: Manifest, kind: str, what: Any, _: str) -> bool:
    pod, server = template["spec"], container(template)
    lists = {
        "env": [one["name"] for one in server["env"]],
        "container": [one["name"] for one in pod["containers"] if one["name"] != "server"],
        "first": [one["name"] for one in pod.get("initContainers", ())],
        "port": [one["containerPort"] for one in server["ports"]],
    }
    match kind:
        case "flag":
            flags = SGLANG if "sglang.launch_server" in server["command"] else VLLM
            asked = flags.parse([what])[0]
            names = {asked.name, *flags.short_for(asked.name)}
            # A revision is pinned to a commit, which the path of the model has.
            return asked.name == "--revision" or any(one.name in names for one in flags.parse(server["command"]))
        case "volume":
            same = [one for one in pod["volumes"] if one["name"] in (what["name"], f"own-{what['name']}")]
            return bool(same) and (same[0] == {**what, "name": same[0]["name"]} or has_token(what))
        case "token":
            return False  # no server speaks to the API server
        case "mount":
            called = {(one["mountPath"], one["name"]) for one in server["volumeMounts"]}
            return bool(called & {(what["mountPath"], name) for name in (what["name"], f"own-{what['name']}")})
        case "pod":
            key, value = what
            found = pod.get(key)
            listed = isinstance(value, list) and all(one in (found or ()) for one in value)
            mapped = isinstance(value, dict) and value.items() <= (found or {}).items()
            return bool(found == value or DEFAULTS.get(key) == value or listed or mapped)
        case "server":
            key, value = what
            return bool(server.get(key) == value or DEFAULTS.get(key) == value)
        case "metadata":
            key, name = what
            return bool(template["metadata"].get(key, {}).get(name) == "v")
    return what in lists.get(kind, ())


def has_token(volume: Manifest) -> bool:
    return any("serviceAccountToken" in source for source in volume.get("projected", {}).get("sources", ()))


def mounts(template: Manifest) -> list[Manifest]:
    containers = [*template["spec"]["containers"], *template["spec"].get("initContainers", ())]
    return [mount for one in containers for mount in one.get("volumeMounts", ())]


def names(items: list[Manifest]) -> set[str]:
    return {one["name"] for one in items}


def named(comments: str, what: str) -> bool:
    return what in " ".join(line.lstrip("# ") for line in comments.splitlines())
