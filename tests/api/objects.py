"""Objects of our kinds, right and wrong: good ones in which up to three fields are set to what the schema, a user or
chance would put there. Every field of the schemas is among them, and whatever is added to the models."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from pydantic.alias_generators import to_snake
from tests.support.edits import GONE, PROFILE, RUN, example, example_profile, example_run

from paceline.api import crds

SCHEMAS = {c["spec"]["names"]["kind"]: c["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for c in crds()}
EXAMPLES = (
    "qwen3-coder-next-upstream", "qwen3-8b-tpu", "qwen3-coder-30b-vllm", "ngram-no-draft", "bring-your-own-pvc",
    "benchmark-profile",
)  # fmt: skip
BASES = {name: example(name) for name in EXAMPLES} | {RUN: example_run(), PROFILE: example_profile()}

FRACTIONS = ["0%", "3%", "5%", "0.2%", "95%", "50%", "100%", "99.9999%", "0.05", "1.23456%", "1000%", "%"]
DURATIONS = ["30m", "1h30m", "10s", "0s", "1d", "PT5M", "500ms", "1.5s", "30m1h", "1h0m0s0ms1h", "0h0m1s", "100000s"]
SOURCES = [
    "hf://a/b",
    "s3://models/x",
    "gs://heads_1/x/y",
    "s3://models",
    "pvc://models/x",
    "pvc://company-models/x/y",
    "pvc://other/x",
    "a/b",
    "hf://a",
    "pvc://models",
]
QUANTITIES = ["400Gi", "1", "1.5Ti", "400GB", "0"]
WORDS = ["a", "b1", "wide", "narrow", "baseline", "x-y", "A", "", "é", "a b", "x" * 31, "é" * 64, "-", "0", "a.b"]
LIKELY: Mapping[str, list[str]] = {
    "algorithm": ["EAGLE", "EAGLE3", "NEXTN", "MTP", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "MEDUSA", "eagle3"],
    "source": [
        *SOURCES, "builtin://code", "builtin://math", "configMap://prompts/a.json", "hf://datasets/a/b/c.jsonl", "Pods",
        "hf://datasets/a/b/c/d.json", "hf://datasets/a/b", "hf://datasets/a/b.json", "hf://datasets/a/b/c.parquet",
    ],
    "revision": ["main", "v1.0", "refs/pr/1", "-x"],
    "commit": ["0" * 40, "abcdef0", "main"],
    "type": ["SGLang", "vLLM", "SGLangJAX", "sglang"],
    "name": ["main", "wide", "Main"],
    "version": ["0.5.23", "0.33.0", "0.1.0rc0", "latest", "1"],
    "image": [
        "a/b:c", "a@sha256:0", " ", "lmsysorg/sglang:v0.5.23", "vllm/vllm-openai:latest", "x/lmsysorg/sglang:0.5.6-a",
    ],
    "resourceName": ["nvidia.com/gpu", "google.com/tpu", "a b"],
    "productLabel": ["nvidia.com/gpu.product", "cloud.google.com/gke-tpu-accelerator", "/"],
    "hostPath": ["/models", "/a/..b", "/a/../b", "/", "models", "/a:b"],
    "minImprovement": FRACTIONS,
    "maxRegression": FRACTIONS,
    "maxSlowdown": FRACTIONS,
    "confidence": FRACTIONS,
    "maxIncrease": FRACTIONS,
    "maxEvidenceAge": DURATIONS,
    "progressDeadline": DURATIONS,
    "memory": QUANTITIES,
    "size": QUANTITIES,
    "accessModes": ["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"],
    "datasets": ["code", "swe", "math"],
    "requestRate": ["8", "0.5", "0", "1e3", "3.2", "4.8", "0.05", "999999.999"],
    "start": DURATIONS,
    "workload": DURATIONS,
    "gpuHours": ["12", "0.25", "-1"],
}  # fmt: skip
texts = st.sampled_from([*WORDS, *FRACTIONS, *DURATIONS, *SOURCES, *QUANTITIES])
numbers = st.sampled_from([-1, 0, 1, 2, 3, 4, 5, 6, 8, 9, 32, 64, 65, 96, 512, 4096, 2**31, 2**63, -(2**63), 0.5])
anything = texts | numbers | st.sampled_from([True, None, [], {}, ["a"], [None], [1, 2], [2, 1], [1, 1], {"a": "b"}])

Path = tuple[str | int, ...]


def fields(node: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Everything at and below; of a list its first two items."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from fields(child, (*path, name))
    for i in (0, 1) if "items" in node else ():
        yield from fields(node["items"], (*path, i))


def values(node: Mapping[str, Any], leaf: str = "") -> st.SearchStrategy[Any]:
    """Of the type that the schema wants, with its bounds and just beyond."""
    match node["type"]:
        case "string" if "enum" in node:
            return st.sampled_from(node["enum"])
        case "string":
            return st.sampled_from(LIKELY.get(leaf, WORDS)) | st.sampled_from(LIKELY.get(leaf, WORDS)) | texts
        case "integer":
            low, high = node.get("minimum", 0), node.get("maximum", 64)
            return st.sampled_from(sorted({low - 1, low, low + 1, (low + high) // 2, high, high + 1})) | numbers
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(values(node["items"], leaf), max_size=3)
        case "object" if "properties" in node:
            required = set(node.get("required", ()))
            made = {name: values(child, name) for name, child in node["properties"].items()}
            return st.fixed_dictionaries(
                {name: one for name, one in made.items() if name in required},
                optional={name: one for name, one in made.items() if name not in required},
            )
        case "object" if "additionalProperties" in node:
            keys = st.sampled_from(["a", "example.com/team", "a b", "", "paceline.dev/pool"])
            return st.dictionaries(keys, values(node["additionalProperties"]), max_size=2)
    return st.sampled_from([{}, {"spec": {}}, {"secretKeyRef": {"name": "s", "key": "k"}}])


CHANGES: Mapping[str, list[tuple[Path, Mapping[str, Any]]]] = {
    kind: [(("metadata", "name"), {"type": "string"}), *fields(schema["properties"]["spec"], ("spec",))]
    for kind, schema in SCHEMAS.items()
}


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    manifest = deepcopy(BASES[draw(st.sampled_from(sorted(BASES)))])
    for _ in range(draw(st.integers(0, 3))):
        there = [(path, node) for path, node in CHANGES[manifest["kind"]] if parent(manifest, path) is not None]
        path, node = draw(st.sampled_from(there))
        leaf = next(str(step) for step in reversed(path) if isinstance(step, str))
        match draw(st.integers(0, 9)):
            case 0:
                put(parent(manifest, path), path[-1], draw(anything))
            case 1:
                put(parent(manifest, path), path[-1], GONE)
            case 2 if "properties" in node:
                misspelt = st.sampled_from(["servedname", *map(to_snake, node["properties"])])
                put(parent(manifest, (*path, "x")), draw(misspelt), "x")
            case _:
                put(parent(manifest, path), path[-1], draw(values(node, leaf)))
    return manifest


def parent(manifest: Any, path: Path) -> Any:
    """The map or list that a path ends in; None where there is none, or no such item in it."""
    for step in path[:-1]:
        match manifest:
            case dict() if step in manifest:
                manifest = manifest[step]
            case list() if isinstance(step, int) and step < len(manifest):
                manifest = manifest[step]
            case _:
                return None
    match manifest, path[-1]:
        case (dict(), str()):
            return manifest
        case (list(), int() as i) if i < len(manifest):
            return manifest
    return None


def put(node: Any, step: str | int, value: Any) -> None:
    if node is not None and value is GONE:
        node.pop(step, *[None] * isinstance(node, dict))
    elif node is not None:
        node[step] = value
