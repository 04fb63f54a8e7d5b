"""`.github/workflows/release.yml`, which nothing here can run: what can be read off it."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
TOOLS = ROOT / "dev" / "release" / "tools"
TEXT = WORKFLOW.read_text()


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    said: dict[str, Any] = yaml.load(TEXT, Loader=yaml.BaseLoader)  # `on` stays a word
    return said


@pytest.fixture(scope="module")
def actionlint() -> Path:
    """As a release takes its tools."""
    made = subprocess.run([TOOLS, "actionlint"], capture_output=True, text=True, timeout=280, check=False)
    assert made.returncode == 0, made.stderr
    return (
        Path(subprocess.run([TOOLS, "--where"], capture_output=True, text=True, check=True).stdout.strip())
        / "actionlint"
    )


def linted(actionlint: Path, text: str) -> str:
    done = subprocess.run(
        [actionlint, "-no-color", "-"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_actionlint_finds_nothing(actionlint: Path) -> None:
    assert linted(actionlint, TEXT) == ""


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("steps.publish.outputs.image }}", "steps.publsh.outputs.image }}", 'property "publsh" is not defined'),
        ("packages: write", "package: write", 'unknown permission scope "package"'),
        ("needs: publish", "needs: build", 'needs job "build" which does not exist'),
    ],
)
def test_actionlint_would_find_a_mistake(actionlint: Path, before: str, after: str, says: str) -> None:
    assert before in TEXT
    assert says in linted(actionlint, TEXT.replace(before, after))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_only_a_tag_of_a_version_starts_it(workflow: dict[str, Any]) -> None:
    assert workflow["on"] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+", "v[0-9]+.[0-9]+.[0-9]+-*"]}}


def test_each_job_may_do_what_it_does_and_no_more(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "publish": {"contents": "read", "packages": "write", "id-token": "write", "attestations": "write"},
        "announce": {"contents": "write"},
    }


def test_every_action_is_pinned_by_its_commit_and_says_its_version() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_the_checkout_leaves_no_token_behind(workflow: dict[str, Any]) -> None:
    (checkout,) = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"]["persist-credentials"] == "false"


def test_no_expression_is_written_into_a_script(workflow: dict[str, Any]) -> None:
    """A tag's name in `${{ }}` would be code."""
    assert [step["run"] for step in steps(workflow) if "${{" in step.get("run", "")] == []


def test_what_it_runs_is_there_and_a_dry_run_runs_it(workflow: dict[str, Any]) -> None:
    run = "\n".join(step.get("run", "") for step in steps(workflow))
    named = set(re.findall(r"(?<![\w./])dev/release/\w+", run))
    assert named == {"dev/release/tools", "dev/release/publish"}
    dry = (ROOT / "dev" / "release" / "dry_run.py").read_text()
    assert all(f'SCRIPTS / "{name.rpartition("/")[2]}"' in dry for name in named)


def test_what_is_signed_is_what_is_attested(workflow: dict[str, Any]) -> None:
    attested = [step["with"] for step in steps(workflow) if step.get("uses", "").startswith("actions/attest@")]
    assert [(one["subject-name"], one["subject-digest"]) for one in attested] == [
        (f"${{{{ steps.publish.outputs.{of} }}}}", f"${{{{ steps.publish.outputs.{of}-digest }}}}")
        for of in ("image", "chart")
    ]
    written = set(re.findall(r"(?m)^    printf '(?:(?P<a>[\w-]+)=.*)", (ROOT / "dev/release/publish").read_text()))
    assert written == {"image", "chart"}
