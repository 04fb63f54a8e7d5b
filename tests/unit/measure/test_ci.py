"""action.yml, ci/gitlab.yml and examples/ci: their scripts under bash, with real measurements on emulated engines.

The programs of the runner are real; GitHub's API is a program `gh` that answers as recorded here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.documented import blocks
from tests.unit.measure.test_story import QUICK

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
GITLAB = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text())
WORKFLOWS = {name: yaml.safe_load((ROOT / f"examples/ci/{name}.yml").read_text()) for name in ("measure", "comment")}
ON: Any = True
"""What YAML 1.1 makes of the key `on`."""
PROGRAMS = Path(sys.executable).parent
OPTIONS = ["--emulated", *(f"--env={variable}" for variable in QUICK)]
GOOD, BAD = ("code", 1), ("terminal", 32)
"""Prompts and concurrency where the published speeds of the head are 1.39x and 0.89x."""


def question(file: Path, of: tuple[str, int]) -> None:
    dataset, concurrency = of
    manifest = yaml.safe_load((ROOT / "examples/try.yaml").read_text())
    spec = manifest["spec"]
    spec["pools"][0]["load"] = [{"concurrency": [concurrency]}]
    spec["benchmark"] = {
        "datasets": [
            {"name": dataset, "source": f"builtin://{dataset}", "requests": 6 * concurrency, "maxTokens": 48},
        ]
    }
    spec["gate"] = {"minImprovement": "1%", "confidence": "50%", "decideAfterRounds": [2]}
    file.write_text(yaml.safe_dump(manifest))


def bash(script: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """As a runner runs a step with `shell: bash`."""
    path = os.pathsep.join([str(folder / "bin"), str(PROGRAMS), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env={**os.environ, "PATH": path, **variables},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    code: int
    told: str
    summary: str
    outputs: Mapping[str, str]


def act(folder: Path, **inputs: str) -> Acted:
    """The action's step `measure`, as a runner would run it: `paceline` is there, and nothing is uploaded."""
    (step,) = [one for one in ACTION["runs"]["steps"] if one.get("id") == "measure"]
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | {"paceline": "paceline"} | inputs
    known = {f"inputs.{name}": value for name, value in given.items()}
    environment = {name: value_of(text, known) for name, text in step["env"].items()}
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    (folder / "temp").mkdir()
    told = {name: str(file) for name, file in files.items()} | {"RUNNER_TEMP": str(folder / "temp")}
    done = bash(step["run"], folder, **environment, **told)
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return Acted(
        code=done.returncode,
        told=done.stdout + done.stderr,
        summary=files["GITHUB_STEP_SUMMARY"].read_text(),
        outputs=outputs,
    )


def value_of(text: str, known: Mapping[str, str]) -> str:
    """An expression of `||` and names."""
    (inside,) = re.fullmatch(r"\$\{\{ (.*) \}\}", text).groups()  # type: ignore[union-attr]
    return next((value for name in inside.split(" || ") if (value := known.get(name, ""))), "")


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, int], Acted]:
    """The action on a good and on a bad head."""
    done = {}
    for of in (GOOD, BAD):
        folder = tmp_path_factory.mktemp(of[0])
        question(folder / "deploy.yaml", of)
        done[of] = act(folder, file="deploy.yaml", options="\n".join([*OPTIONS, ""]))
    return done


def measured_before(done: Acted, file: Path) -> None:
    """`paceline measure -o FILE` then ends with that verdict at once: measuring it again would take half a minute."""
    file.parent.mkdir(exist_ok=True)
    shutil.copy(Path(done.outputs["folder"]) / "run.yaml", file)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("of", "code", "decision"), [(GOOD, 0, "Promote wide"), (BAD, 10, "Keep the baseline")])
def test_the_action_ends_by_the_verdict_and_the_table_is_there_either_way(
    acted: Mapping[tuple[str, int], Acted], of: tuple[str, int], code: int, decision: str
) -> None:
    done = acted[of]
    assert done.code == code, done.told
    assert done.outputs["exit-code"] == str(code)
    assert f"## latency: {decision}" in done.summary
    assert "| wide | all, by weight | \\>" in done.summary
    assert "Emulated: no model ran" in done.summary
    kept = Path(done.outputs["folder"])
    assert {"run.yaml", "report.md", "report.html"} <= {path.name for path in kept.iterdir()}
    assert (kept / "report.md").read_text() == done.summary


def test_a_file_that_cannot_be_measured_fails_the_step_and_says_so(tmp_path: Path) -> None:
    done = act(tmp_path, file="nowhere.yaml")
    assert (done.code, done.outputs["exit-code"]) == (1, "1")
    assert done.summary == "Nothing was measured (exit code 1): see the log of this step.\n"


def test_an_option_is_one_argument_whatever_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    written = tmp_path / "bin" / "words"
    written.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\nexit 7\n')
    written.chmod(0o755)
    done = act(tmp_path, file="a b.yaml", options="--env=A=$(id) `id`\n\n--engine-command=x y; id\n", paceline="words")
    assert done.code == 7
    assert done.told.splitlines()[:4] == ["measure", "a b.yaml", "--env=A=$(id) `id`", "--engine-command=x y; id"]


def test_the_template_of_gitlab_does_the_same(tmp_path: Path, acted: Mapping[tuple[str, int], Acted]) -> None:
    question(tmp_path / "deploy.yaml", BAD)
    measured_before(acted[BAD], tmp_path / "bin/run.yaml")
    program = tmp_path / "bin/at-once"
    program.write_text('#!/bin/bash\n[ -e paceline/run.yaml ] || cp bin/run.yaml paceline/\nexec paceline "$@"\n')
    program.chmod(0o755)
    job = GITLAB[".paceline-measure"]
    (script,) = job["script"]
    done = bash(script, tmp_path, **job["variables"] | {"PACELINE_OPTIONS": "\n".join(OPTIONS), "PACELINE": "at-once"})
    assert done.returncode == 10, done.stdout + done.stderr
    assert "Keep the baseline" in (tmp_path / "paceline/report.md").read_text()
    assert (job["artifacts"]["when"], job["artifacts"]["paths"]) == ("always", ["paceline/"])


def test_a_run_that_a_merge_request_has_committed_is_not_continued(tmp_path: Path) -> None:
    """`paceline measure` of a finished run would end with its verdict at once."""
    for folder in ("bin", "paceline"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "bin" / "paceline"
    program.write_text("#!/bin/bash\n[ ! -e paceline/run.yaml ]\n")
    program.chmod(0o755)
    for name in ("run.yaml", "deploy.yaml"):
        (tmp_path / "paceline" / name).touch()
    job = GITLAB[".paceline-measure"]
    assert bash(job["script"][0], tmp_path, **job["variables"]).returncode == 0
    assert [path.name for path in (tmp_path / "paceline").iterdir()] == ["deploy.yaml"]


def recipe() -> str:
    """The last step of a training, as docs/ci.md has it."""
    (found,) = [block for block in blocks((ROOT / "docs/ci.md").read_text()) if "hf upload" in block]
    return found


@pytest.mark.parametrize(("of", "pushed"), [(GOOD, True), (BAD, False)])
def test_a_head_with_a_reject_is_not_pushed(
    tmp_path: Path, acted: Mapping[tuple[str, int], Acted], of: tuple[str, int], pushed: bool
) -> None:
    """With a hub's client that only says what it would push."""
    question(tmp_path / "head.yaml", of)
    measured_before(acted[of], tmp_path / "run.yaml")
    (tmp_path / "bin").mkdir()
    hub = tmp_path / "bin" / "hf"
    hub.write_text('#!/bin/bash\necho "pushed: $*"\n')
    hub.chmod(0o755)
    (tmp_path / "models/me/my-head").mkdir(parents=True)
    done = bash(recipe().replace("--models models --venv /opt/sglang", " ".join(OPTIONS)), tmp_path)
    assert ("pushed: upload me/my-head models/me/my-head" in done.stdout) is pushed, done.stdout + done.stderr
    assert (done.returncode == 0) is pushed
    assert (tmp_path / "models/me/my-head/README.md").exists() is pushed


def test_a_head_without_a_card_is_not_pushed(tmp_path: Path) -> None:
    """`paceline measure` ends with 0 for a Sweep, too, which promotes nothing."""
    (tmp_path / "bin").mkdir()
    for name, script in (("paceline", '[ "$1" = measure ]'), ("hf", "echo pushed")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "models/me/my-head").mkdir(parents=True)
    done = bash(recipe(), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")


# Who may start it, and what the comment may show.


def test_a_pull_request_is_measured_only_when_the_label_is_given() -> None:
    assert WORKFLOWS["measure"][ON] == {"pull_request": {"types": ["labeled"]}}
    assert {job["if"] for job in WORKFLOWS["measure"]["jobs"].values()} == {"github.event.label.name == 'measure'"}
    (rule,) = GITLAB[".paceline-measure"]["rules"]
    assert rule["if"].endswith("&& $CI_MERGE_REQUEST_LABELS =~ /(^|,)measure(,|$)/")


def test_no_workflow_runs_the_code_of_a_pull_request_with_rights() -> None:
    everything = [*ROOT.glob(".github/workflows/*.yml"), *(ROOT / "examples/ci").iterdir(), ROOT / "action.yml"]
    assert [path for path in everything if "pull_request_target" in path.read_text()] == []
    assert WORKFLOWS["measure"]["permissions"] == {"contents": "read"}
    (checkout,) = [one for one in steps("measure") if one.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"] == {"ref": "${{ github.event.pull_request.head.sha }}", "persist-credentials": False}


def test_who_comments_has_no_code_of_the_pull_request() -> None:
    comment = WORKFLOWS["comment"]
    assert (list(comment[ON]), comment["permissions"]) == (["workflow_run"], {})
    assert comment[ON]["workflow_run"]["workflows"] == [WORKFLOWS["measure"]["name"]]
    (job,) = comment["jobs"].values()
    assert job["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert [one["uses"] for one in steps("comment") if "uses" in one] == []


def test_no_script_has_an_expression_and_every_foreign_action_is_pinned() -> None:
    every = [*ACTION["runs"]["steps"], *steps("measure"), *steps("comment")]
    assert [one["run"] for one in every if "${{" in one.get("run", "")] == []
    used = [one["uses"] for one in every if "uses" in one and not one["uses"].startswith("OWNER/")]
    assert [one for one in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one)] == []


def steps(workflow: str) -> list[dict[str, Any]]:
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job["steps"]]


SHA = "5f0c9a1b2d5f0c9a1b2d5f0c9a1b2d5f0c9a1b2d"
OPEN = [{"number": 6, "head": {"sha": "0" * 40}}, {"number": 7, "head": {"sha": SHA}}]
GH = """#!/bin/bash
echo "$*" >> asked
case "$*" in
  *pulls*) cat pulls.json ;;
  */artifacts) cat artifacts.json ;;
  */zip) cat written.zip ;;
  "pr comment"*) cp "${@: -1}" posted.md ;;
esac
"""


def commented(folder: Path, report: bytes, size: int = 1000, pulls: list[dict[str, Any]] = OPEN) -> str:
    """What is posted for an artifact with that report; "" if nothing is."""
    (folder / "bin").mkdir()
    (folder / "bin" / "gh").write_text(GH)
    (folder / "bin" / "gh").chmod(0o755)
    (folder / "pulls.json").write_text(json.dumps(pulls))
    artifacts = [{"id": 4, "name": "other", "size_in_bytes": 1}, {"id": 5, "name": "paceline", "size_in_bytes": size}]
    (folder / "artifacts.json").write_text(json.dumps({"artifacts": artifacts}))
    with zipfile.ZipFile(folder / "written.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("report.md", report)
        made.writestr("number", "6")  # nobody reads it
    (step,) = steps("comment")
    event = {"REPOSITORY": "me/mine", "RUN": "12", "URL": "https://github.com/me/mine/actions/runs/12", "SHA": SHA}
    done = bash(step["run"], folder, **event, CONCLUSION="failure", BRANCH="you:patch-1", GH_TOKEN="")
    assert done.returncode == 0, done.stderr
    posted = folder / "posted.md"
    return posted.read_text() if posted.exists() else ""


def test_the_table_is_posted_as_plain_text_under_the_pull_request_of_the_event(tmp_path: Path) -> None:
    posted = commented(tmp_path, b"# Table\n```\n@everybody <img src=x>\x1b[31m \xff\n~~~\n")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "api --method GET repos/me/mine/pulls -f state=open -f head=you:patch-1"
    assert asked[-1] == "pr comment 7 --repo me/mine --body-file comment.md"
    assert posted.count("```") == 2
    assert posted.endswith("```text\n# Table\n'''\n@everybody <img src=x>[31m \n~~~\n\n```\n")


def test_a_long_table_is_cut_between_two_characters(tmp_path: Path) -> None:
    """iconv ends with 1 for half a character."""
    assert commented(tmp_path, ("x" + "é" * 40_000).encode()).endswith("é\n```\n")


def test_a_long_table_is_cut(tmp_path: Path) -> None:
    """GitHub takes 65,536 characters; what is packed well is not unpacked whole."""
    assert 60_000 < len(commented(tmp_path, b"x" * 50_000_000)) < 61_000


@pytest.mark.parametrize(
    "wrong", [{"size": 5_000_000}, {"pulls": []}, {"pulls": OPEN[:1]}], ids=["too large", "none", "newer commits"]
)
def test_nothing_is_posted_for_what_is_too_large_or_no_longer_there(tmp_path: Path, wrong: dict[str, Any]) -> None:
    assert commented(tmp_path, b"# Table\n", **wrong) == ""
