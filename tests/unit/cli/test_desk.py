"""The desk's manners: commands, options, and where a problem stands in its file."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.example_files import EXAMPLES
from tests.support.messages import Says
from tests.unit.api.test_defaults import smallest

from paceline import api, cli
from paceline.cli import completion, main, plugin
from paceline.cli.validate import of_text
from paceline.measure.question import asked

GOOD = EXAMPLES / "qwen3-8b.yaml"


def changed(directory: Path, *changes: tuple[str, Any]) -> Path:
    """The example with values at paths such as `spec.pools.0.load`."""
    manifest = yaml.safe_load(GOOD.read_text())
    for path, value in changes:
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        node = manifest
        for step in way:
            node = node[step]
        node[last] = value
    file = directory / "changed.yaml"
    file.write_text(yaml.safe_dump(manifest, sort_keys=False))
    return file


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_it_says_its_version(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("paceline 0.")


def test_help_has_every_command_in_its_group_but_the_pods_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert sorted(listed) == sorted(set(cli.COMMANDS) - set(cli.NOT_LISTED))
    assert [line for line in out.splitlines() if line.endswith(":")] == [f"{title}:" for title in cli.COMMAND_GROUPS]
    assert plugin(["--help"]) == 0
    assert "validate" not in capsys.readouterr().out


def test_a_misspelt_command_is_guessed(capsys: pytest.CaptureFixture[str], says: Says) -> None:
    assert main(["validat"]) == 2
    assert main(["xyzzy"]) == 2
    says(*capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("option", ["-f", "--filename"])
@pytest.mark.parametrize("command", ["validate", "render", "plan"])
def test_a_file_may_be_named_as_kubectl_has_it(capsys: pytest.CaptureFixture[str], command: str, option: str) -> None:
    assert main([command, option, str(GOOD)]) == 0
    named = capsys.readouterr()
    assert main([command, str(GOOD)]) == 0
    assert capsys.readouterr() == named


def test_several_files_are_validated_and_one_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-f", str(GOOD), "-o", "json", "-f", str(EXAMPLES / "try.yaml")]) == 0
    assert capsys.readouterr().err.count(": valid (") == 2
    with pytest.raises(SystemExit) as ended:
        main(["plan", "-f", str(GOOD), str(GOOD)])
    assert ended.value.code == 2
    assert "FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("spec.accelerator.count", "4", "spec.accelerator.count"),
        ("spec.pools.0.load.0.concurrency", 16, "spec.pools[0].load[0].concurrency"),
        ("spec.draft.source", "acme/head", "spec.draft.source"),
        ("spec.draft.algorithm", "eagle3", "spec.draft.algorithm"),
        ("spec.engine.version", "v0.5.23", "spec.engine.version"),
        ("spec.affinity", {"a": "b"}, "spec.affinity"),
        ("spec.accelerator.tolerations", [], "spec.accelerator.tolerations"),
        ("spec.pools.0.autoscaling", {"max": 3}, "spec.pools[0].autoscaling"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write_and_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, value: Any, place: str, says: Says
) -> None:
    file = changed(tmp_path, (path, value))
    assert main(["validate", str(file)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    where, _, message = line.partition(f": {place}: ")
    number, column = map(int, where.removeprefix(f"{file}:").split(":"))
    key = place.split(".")[-1].split("[")[0]
    assert file.read_text().splitlines()[number - 1][column - 1 :].startswith(f"{key}:")
    says(message)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.engine.version", "0.6.0"),
        ("spec.accelerator.product", "H100"),
        ("spec.accelerator.count", 3),
        ("spec.engine.podTemplate", {"spec": {"hostAliases": [{"kee": "gpu"}]}}),
    ],
)
def test_what_was_not_checked_is_a_note_of_a_valid_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, value: Any, says: Says
) -> None:
    file = changed(tmp_path, (path, value))
    assert main(["validate", str(file)]) == 0
    out, err = capsys.readouterr()
    assert (out, ": note: " in err) == ("", True)
    says(*(line.partition(": ")[2] for line in err.splitlines()))


def test_a_run_whose_commits_are_to_be_filled_in_is_told_that_it_would_wait(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(EXAMPLES / "sweep-gb10.yaml")]) == 0
    assert "note: spec.target.commit " in capsys.readouterr().err


def test_annotations_of_github_have_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = changed(tmp_path, ("spec.accelerator.count", "4"), ("spec.engine.version", "0.6.0"))
    assert main(["validate", "-o", "github", str(file)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"::error file={file},line=")
    assert "::spec.accelerator.count: " in line
    file = changed(tmp_path, ("spec.engine.version", "0.6.0"))
    assert main(["validate", "-o", "github", str(file)]) == 0
    assert "::notice file=" in capsys.readouterr().out


def test_a_list_and_several_documents_keep_their_places() -> None:
    item = "  - apiVersion: paceline.dev/v1alpha1\n    kind: BenchmarkRun\n    metadata: {name: 7}\n    spec: {}\n"
    text = f"apiVersion: v1\nkind: List\nitems:\n{item}---\n- 1\n---\n{item.replace('  - ', '    ')}"
    places = [(one.line, one.column) for one in of_text(text) if one.path == "metadata.name"]
    assert places == [(6, 16), (13, 16)]


@pytest.mark.parametrize(
    ("text", "at"), [("a:\n  - b\n c: d\n", ":3:2: "), ("a: b: c\n", ":1:5: "), ("a:\n\tb: c\n", ":2:1: ")]
)
def test_a_text_that_is_no_yaml_says_where_and_the_usual_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, at: str, says: Says
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    assert main(["validate", str(file)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{file}{at}")
    says(out)


def test_a_resource_is_no_case_of_the_gate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", str(GOOD)]) == 1
    assert "SpeculativeDeployment" in capsys.readouterr().err


def test_datasets_are_listed_where_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    assert capsys.readouterr().out.startswith("NAME ")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_commands_and_options(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("validate", "promote-anyway", "--gpus-free"))


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["st"], ["status"]),
        (["prom"], ["promote", "promote-anyway"]),
        (["status", "--all"], ["--all-namespaces"]),
        (["validate", ""], []),
    ],
)
def test_kubectl_is_told_what_may_follow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], completed: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-paceline", *words])
    assert completion.kubectl() == 0
    assert capsys.readouterr().out.splitlines() == [*completed, ":4"]


def test_json_of_problems_is_as_before_with_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-o", "json", str(changed(tmp_path, ("spec.accelerator.count", 0)))]) == 1
    (problem,) = json.loads(capsys.readouterr().out)
    assert set(problem) == {"file", "line", "column", "path", "message"}
    assert main(["validate", "-o", "json", str(GOOD)]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_file_cannot_write_lines_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line of `-o github` is a command to the runner of a workflow."""
    file = changed(tmp_path, ("spec.accelerator.x\n::warning::injected\x1b[31m", 6))
    for form in ("text", "github"):
        assert main(["validate", "-o", form, str(file)]) == 1
        out = capsys.readouterr().out
        assert len(out.splitlines()) == 1
        assert "\x1b" not in out


@pytest.mark.parametrize("items", ["", "{a: 1}", "7"])
def test_a_list_without_a_list_of_items_has_nothing_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], items: str, says: Says
) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(f"apiVersion: v1\nkind: List\nitems: {items}\n")
    assert main(["validate", str(file)]) == 0
    says(capsys.readouterr().err)


def test_files_are_completed_in_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").touch()
    assert main(["completion", "bash"]) == 0
    (tmp_path / "complete.sh").write_text(capsys.readouterr().out)
    ask = "source complete.sh; COMP_WORDS=(paceline validate mi); COMP_CWORD=2; _shtab_paceline; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "mine.yaml" in done.stdout.split(), done


NULLS = ("pools", "candidates", "benchmark", "pools.0.search", "benchmark.datasets")


@pytest.mark.parametrize("path", NULLS)
def test_null_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str) -> None:
    """As to the API server; templates of Helm write it."""
    assert main(["validate", str(changed(tmp_path, (f"spec.{path}", None)))]) == 0, capsys.readouterr()


def told_of(directory: Path, capsys: pytest.CaptureFixture[str], *changes: tuple[str, Any]) -> str:
    main(["validate", str(changed(directory, *changes))])
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("pools", []),
        ("foo", 1),
        ("spec.gate", {"minImprovement": 5}),
        ("spec.guard", {"window": 600}),
        ("spec.cache", {"claim": {"size": 400}}),
        ("spec.target.servedName", 123),
        ("spec.pools.0.candidates", [{"name": "x"}]),
        ("spec.pools.0.concurrency", [1]),
    ],
)
def test_it_says_where_and_how_to_write_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, value: object, says: Says
) -> None:
    lines = [line.partition(": ")[2] for line in told_of(tmp_path, capsys, (path, value)).splitlines()]
    assert any(line.startswith(".".join(path.split(".")[:2])) for line in lines)
    says(*lines)


def test_y_is_a_truth_value_as_to_kubectl(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "y.yaml"
    file.write_text(GOOD.read_text().replace("name: chat\n", "name: y\n", 1))
    assert main(["validate", str(file)]) == 1
    assert "true" in capsys.readouterr().out


def test_what_no_pool_measures_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    said = told_of(tmp_path, capsys, ("spec.pools.0.candidates", ["wide"]), ("spec.pools.0.load.0.datasets", ["chat"]))
    assert "note: spec.candidates[1]: " in said
    says(*(line.partition(": ")[2] for line in said.splitlines()))


@pytest.mark.parametrize("command", ["render", "plan"])
def test_the_smallest_resource_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """It names no pools, no count and no version."""
    file = tmp_path / "smallest.yaml"
    file.write_text(yaml.safe_dump(smallest()))
    assert main([command, str(file)]) == 0
    assert "main" in capsys.readouterr().out


def test_a_pool_that_nobody_has_written_can_be_measured() -> None:
    assert [arm.name for arm in asked(api.stored(smallest()), None).arms] == ["baseline", "chain"]


def planned(directory: Path, capsys: pytest.CaptureFixture[str], manifest: dict[str, Any]) -> str:
    (directory / "plan.yaml").write_text(yaml.safe_dump(manifest))
    main(["plan", str(directory / "plan.yaml")])
    return capsys.readouterr().out


def test_a_budget_that_ends_before_a_look_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    """And what a look would cost is no less at worst than at best."""
    manifest = smallest()
    manifest["spec"]["benchmark"] = {"budget": {"gpuHours": "1"}}
    said = planned(tmp_path, capsys, manifest)
    head, *lines = said.splitlines()
    says(head.rpartition("; ")[2], *(line for line in lines if "round 1 of 8" in line))
    costs = [line.split()[-1].split("-") for line in said.splitlines() if line.startswith("main") and "%" in line]
    assert len(costs) == 2
    assert all(float(least) <= float(most) for least, most in costs)


def test_a_sweep_has_no_looks_and_promotes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    manifest = yaml.safe_load((EXAMPLES / "sweep-gb10.yaml").read_text())
    for of in (manifest["spec"]["target"], manifest["spec"]["arms"][1]["draft"]):
        of["commit"] = "1" * 40
    said = planned(tmp_path, capsys, manifest)
    says(*(line for line in said.splitlines() if "sweep" in line))
    assert not [word for word in ("verdict", "look", "promoted", "after the first round") if word in said]
