"""Paths, options and commands in names, sources, revisions and arguments: each is tried and refused, or is harmless."""

import ast
from pathlib import Path
from typing import Any

import pytest
from tests.api.test_refusals import dry_run
from tests.support.apiserver import Running
from tests.support.edits import changed, example
from tests.support.injections import ARGUMENTS, HARMLESS, REFUSED, refused

from paceline.api import problems
from paceline.cli.validate import wrong
from paceline.core import Source

OPERATOR = Path(__file__).parents[2] / "operator" / "paceline"
EXAMPLES = {"SGLang": "qwen3-coder-next-upstream", "vLLM": "qwen3-coder-30b-vllm"}
UNPACKS = {"tarfile", "zipfile", "pickle", "shelve", "dill", "cloudpickle", "unpack_archive", "extractall"}


def with_word(path: str, word: Any) -> dict[str, Any]:
    manifest = example()
    manifest["spec"]["engine"].setdefault("env", [{"name": "A", "value": "b"}])
    manifest["spec"]["cache"] = {"claim": {"name": "models", "size": "400Gi", "accessModes": ["ReadWriteMany"]}}
    del manifest["spec"]["pools"][0]["candidates"]  # a name that is refused is no name of the list's either
    return changed(manifest, (path, word))


def test_there_are_two_hundred_of_them() -> None:
    assert len(list(refused())) + sum(map(len, ARGUMENTS.values())) + len(HARMLESS) >= 200


@pytest.mark.parametrize("path", REFUSED)
def test_the_api_server_and_the_desk_refuse_each(apiserver: Running, path: str) -> None:
    assert "status" not in dry_run(apiserver, with_word(*GOOD[path])), "without it the resource is right"
    for where, word in refused():
        if where == path:
            manifest = with_word(path, word)
            answer = dry_run(apiserver, manifest)
            assert answer.get("status") == "Failure", f"{path}: {word!r} was accepted"
            assert list(problems(manifest)), f"{path}: {word!r} passes at the desk"


GOOD = {path: (path, "abc") for path in REFUSED} | {
    path: (path, word)
    for path, word in {
        "spec.target.source": "hf://a/b",
        "spec.draft.source": "hf://a/b",
        "spec.target.revision": "refs/pr/1",
        "spec.engine.apiKeySecretRef": {"name": "keys", "key": "k"},
        "spec.engine.version": "0.5.23",
        "spec.accelerator.resourceName": "nvidia.com/gpu",
    }.items()
}


@pytest.mark.parametrize("path", ["spec.target.source", "spec.draft.source"])
def test_an_address_that_leads_elsewhere_is_none_to_the_prefetch_either(path: str) -> None:
    """Its Job is not the API server's: it parses again."""
    for word in REFUSED[path]:
        with pytest.raises(ValueError, match="is not an address"):
            Source.parse(word)


@pytest.mark.parametrize("engine", ARGUMENTS)
def test_an_argument_that_is_ours_or_nobodys_is_refused_at_the_desk_and_by_the_operator(engine: str) -> None:
    for word in ARGUMENTS[engine]:
        manifest = example(EXAMPLES[engine])
        before = set(map(str, wrong(manifest)))
        manifest["spec"]["engine"]["args"] = [word]
        assert set(map(str, wrong(manifest))) - before, f"{engine} {word}"


def test_no_pod_of_ours_unpacks_an_archive_or_a_pickle() -> None:
    """So no member of one has a path; and archives are not brought (tests/unit/fetch/test_hostile.py)."""
    for file in (
        file for package in ("pods", "fetching", "preflight", "measure") for file in (OPERATOR / package).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.attr] if isinstance(node, ast.Attribute) else []
            assert UNPACKS.isdisjoint(part for name in names for part in name.split(".")), file
