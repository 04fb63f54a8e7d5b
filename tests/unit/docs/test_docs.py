"""What the documents name is there; and the names that AGENTS.md calls load-bearing, where no other test holds them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.plan.world import World
from tests.plan.world import example as plan_example

from paceline import api
from paceline.cli import COMMANDS
from paceline.controller.execute import MANAGER, STATUS_MANAGER
from paceline.core import names
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.kube import APPLIED
from paceline.plan.deployment.look import SUPERSEDED, SUSPENDED, Pool, Snapshot, models_of, pin, pools
from paceline.render import Owner, Settings, round_job
from paceline.render.benchmark import round_plan
from paceline.render.serving import ARM_LABEL, REVISION_LABEL, template

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SETTINGS = Settings(image="paceline")

CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
TEST = re.compile(r"tests/[\w/]+\.py(?:::\w+)+")
FILE = re.compile(r"(?<![\w/.-])(?:charts|crds|dev|docs|examples|operator|tests)/[\w./-]*\w")
TARGET = re.compile(r"\bmake ([a-z][a-z-]*)")
COMMAND = re.compile(r"\.venv/bin/paceline ([a-z]+)")
CONTRACT = re.compile(r"importlinter:([a-z]+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")

document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def code(path: Path) -> str:
    """What stands in code spans and code blocks."""
    return "\n".join(CODE.findall(path.read_text()))


@document
def test_the_tests_it_names_are_there(path: Path) -> None:
    assert [test for test in TEST.findall(path.read_text()) if not is_there(*test.split("::"))] == []


def is_there(file: str, *names: str) -> bool:
    """A function of that name, in the classes before it."""
    source = ROOT / file
    body = ast.parse(source.read_text()).body if source.exists() else []
    for name in names:
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
        ]
        if not found:
            return False
        body = found[0].body
    return True


@document
def test_the_files_it_names_are_there(path: Path) -> None:
    assert [file for file in FILE.findall(code(path)) if not (ROOT / file).exists()] == []


@document
def test_its_links_lead_somewhere(path: Path) -> None:
    inside = [link.partition("#")[0] for link in LINK.findall(path.read_text()) if "://" not in link]
    assert [link for link in inside if not (path.parent / link).exists()] == []


@document
def test_its_commands_are_there(path: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text()))
    contracts = set(re.findall(r"(?m)^\[importlinter:contract:([a-z]+)\]", (ROOT / ".importlinter").read_text()))
    assert set(TARGET.findall(code(path))) <= targets
    assert set(COMMAND.findall(code(path))) <= set(COMMANDS)
    assert set(CONTRACT.findall(code(path))) <= contracts


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_says_why_and_what_else_was_possible(path: Path) -> None:
    headings = re.findall(r"^## (.*)$", path.read_text(), re.MULTILINE)
    assert headings == ["Context", "Decision", "Rejected", "Consequences"]
    assert f"docs/decisions/{path.name}" in (ROOT / "AGENTS.md").read_text()


# Load-bearing names.


def test_operator_is_the_standard_librarys_name() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_names_that_an_older_release_has_left_in_clusters() -> None:
    assert (MANAGER, STATUS_MANAGER) == ("paceline", "paceline-status")
    assert names.MANAGED_BY == {"app.kubernetes.io/managed-by": "paceline"}
    assert (names.DEPLOYMENT_LABEL, names.POOL_LABEL, names.RUN_LABEL, names.COMPONENT_LABEL, names.CACHE_LABEL) == (
        "paceline.dev/deployment", "paceline.dev/pool", "paceline.dev/run", "paceline.dev/component",
        "paceline.dev/cache",
    )  # fmt: skip
    assert (REVISION_LABEL, ARM_LABEL) == ("paceline.dev/revision", "paceline.dev/arm")
    assert (SUPERSEDED, SUSPENDED, APPLIED) == (
        "paceline.dev/superseded", "paceline.dev/suspended", "paceline.dev/applied",
    )  # fmt: skip
    assert ENVIRONMENT == "PACELINE_ROUND"


def test_a_childs_name_is_its_parts_and_never_longer_than_63() -> None:
    assert names.child_name("qwen3-coder-next", "latency", "0123456789", 1, 0, 0) == (
        "qwen3-coder-next-latency-0123456789-1-0-0"
    )
    assert names.child_name("x" * 60, "latency") == f"{'x' * 52}-a573abfb7c"


def test_the_revisions_and_questions_of_the_example_have_not_moved() -> None:
    """Where the example or a default was not changed, a new value means: with this release every pool falls back to its
    baseline and is measured again."""
    assert {
        pool.name: (pool.question, {arm.name: pool.revision(arm) for arm in pool.spec.arms}) for pool in example()
    } == {
        "latency": ("ec359b9e54", {"baseline": "151073b6b7", "wide": "3df9ed17aa"}),
        "throughput": ("3896a5a3ab", {"baseline": "8ae3e3fe89", "narrow": "bbe881bb46", "wide": "05f43d50dd"}),
    }


def test_what_is_measured_is_what_is_served() -> None:
    """The same argv, environment, image and GPUs, but for the wrapper."""
    for pool in example():
        run = pool.run_spec
        plan = round_plan("run", run, run.arms, 0, 0)
        measured, client = round_job(owner(), run, plan, None, (), SETTINGS)["spec"]["template"]["spec"]["containers"]
        asked = RoundPlan.from_json(next(v["value"] for v in client["env"] if v["name"] == ENVIRONMENT))
        for arm, command in zip(pool.spec.arms, asked.arms, strict=True):
            pod = template(owner(), pool.name, pool.server, arm, pool.revision(arm), SETTINGS)["spec"]
            (served,) = pod["containers"]
            assert tuple(served["command"]) == command.argv
            for field in ("env", "image", "resources", "ports"):
                assert served[field] == measured[field]


def test_a_kept_rendering_is_served_whatever_would_be_rendered_today() -> None:
    world = World()
    world.apply(plan_example("latency"))
    world.prefetch_ends()
    (kept,) = world.cluster.of("ControllerRevision")
    kept["data"]["template"]["spec"]["terminationGracePeriodSeconds"] = 7
    world.settle("an older release rendered otherwise", 1)
    (servers,) = world.cluster.of("Deployment")
    assert servers["spec"]["template"] == kept["data"]["template"]


def owner() -> Owner:
    return Owner(kind="SpeculativeDeployment", name="qwen3-coder-next", namespace="models", uid="1")


def example() -> Iterator[Pool]:
    """The pools of the example, every model at the same commit."""
    manifest = yaml.safe_load((ROOT / "examples" / "qwen3-coder-next.yaml").read_text())
    manifest["metadata"] |= {"namespace": "models", "uid": "1"}
    spec = api.deployment(manifest)
    snapshot = Snapshot(manifest=manifest, spec=spec, invalid="", children={}, settings=SETTINGS)
    yield from pools(snapshot, pin(spec, {(m.source, m.revision): "0" * 40 for m in models_of(spec)}))
