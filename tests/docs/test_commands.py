"""Every command of the documents has a row in commands.yaml, and does what the row says."""

import argparse
import dataclasses
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.documented import PAGES, ROOT, blocks, commands, spans
from tests.support.apiserver import BINARIES, BUILD, Running, start
from tests.unit.cli.states import both_promoted

from paceline import cli

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "commands.yaml").read_text())
KINDS = ("desk", "api", "parsed", "make", "elsewhere")
PLACEHOLDERS = {"CV": "0.02", "A:B": "0:2"}


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A folder like a clone, and the environment of its shell."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, row: Mapping[str, Any]) -> str:
        """What is not as the row says; empty if all is."""
        command = filled(row.get("as", row["command"]))
        ended = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=dict(self.environment),
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        told = ended.stdout + ended.stderr
        if ended.returncode == row.get("exit", 0) and row.get("prints", "") in told:
            return ""
        return f"{command}: exit {ended.returncode}, {told[-600:]}"


def filled(command: str) -> str:
    for placeholder, value in TABLE["fill"].items():
        command = command.replace(placeholder, value)
    return command


def rows(*kinds: str) -> list[dict[str, Any]]:
    return [row for kind in kinds for row in TABLE[kind]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    subprocess.run([BUILD, "helm", "kubectl"], check=True, stdout=subprocess.DEVNULL)
    folder = tmp_path_factory.mktemp("clone")
    for name in (".venv", "charts", "dev", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (deploy,) = [block for block in blocks((ROOT / "README.md").read_text()) if block.startswith("apiVersion:")]
    (folder / "deploy.yaml").write_text(deploy)
    run = next(one for one in both_promoted().cluster.of("BenchmarkRun"))
    run = {**run, "metadata": {"name": "measured"}}
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), str(BINARIES), os.environ["PATH"]])
    return Place(folder, {**os.environ, "PATH": path, "HELM_CACHE_HOME": str(folder), "KUBECONFIG": str(folder / "no")})


@pytest.fixture(scope="module")
def cluster(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Place]]:
    """An API server of its own, with nothing of ours in it; its default namespace is `models`."""
    running = start(tmp_path_factory.mktemp("apiserver"))
    try:
        mine = place.folder / "kubeconfig"
        shutil.copy(running.kubeconfig, mine)
        server = dataclasses.replace(running, kubeconfig=mine)
        server.kubectl("config", "set-context", "--current", "--namespace", "models")
        yield server, Place(place.folder, {**place.environment, "KUBECONFIG": str(mine)})
    finally:
        running.stop()


def promoted(server: Running) -> None:
    """What the operator has written once both pools of the example are promoted."""
    cluster = both_promoted().cluster
    for kind, plural in (("Deployment", "deployment"), ("BenchmarkRun", "bench"), ("SpeculativeDeployment", "specdep")):
        for one in cluster.of(kind):
            name, labels = one["metadata"]["name"], one["metadata"].get("labels") or {}
            made = {key: value for key, value in one.items() if key != "status"}
            if kind != "SpeculativeDeployment":  # that was applied
                metadata = {"name": name, "labels": labels, "namespace": "models"}
                server.kubectl("create", "-f", "-", given={**made, "metadata": metadata})
            if kind != "Deployment":
                status = json.dumps({"status": one["status"]})
                server.kubectl("patch", plural, name, "--subresource=status", "--type=merge", "-p", status)


def test_every_command_has_one_row_and_every_row_a_command() -> None:
    pages = [page for page in PAGES if str(page.relative_to(ROOT)) not in TABLE["pages"]]
    found = {command for page in pages for command in commands(page)}
    listed = [row["command"] for row in rows(*KINDS)]
    assert len(found) > 80
    assert sorted(found - set(listed)) == []
    assert sorted(set(listed) - found) == []
    assert len(listed) == len(set(listed))


def test_a_page_whose_commands_another_test_runs_is_there_and_so_is_the_test() -> None:
    assert [page for page in TABLE["pages"] if not any(commands(ROOT / page))] == []
    assert [test for test in TABLE["pages"].values() if not (ROOT / test).exists()] == []


def test_every_row_that_fails_says_how_far_it_comes() -> None:
    short = [row["command"] for row in rows("desk", "api") if row.get("exit", 0) not in (0, 13) and "prints" not in row]
    assert short == []


def test_what_is_run_in_its_place_is_the_same_command() -> None:
    """The same words, but for some that follow, placeholders and times."""
    for row in rows("desk", "api"):
        if "as" in row and not row["command"].startswith("address="):
            mine = [word for word in shlex.split(row["as"]) if word not in ("timeout", "15")]
            assert mine[:3] == shlex.split(row["command"])[:3] or mine[:2] == shlex.split(row["command"])[:2], row["as"]


@pytest.mark.parametrize("row", rows("desk"), ids=lambda row: row["command"])
def test_what_needs_no_cluster_does_what_it_says(place: Place, row: dict[str, Any]) -> None:
    assert place.run(row) == ""


@pytest.mark.timeout(900)
def test_what_needs_a_cluster_is_taken_by_a_real_api_server(cluster: tuple[Running, Place]) -> None:
    server, place = cluster
    wrong = []
    for row in rows("api"):
        wrong += [why] if (why := place.run(row)) else []
        if row.get("then") == "promoted":
            promoted(server)
    assert "\n".join(wrong) == ""


@pytest.mark.parametrize("row", rows("parsed"), ids=lambda row: row["command"])
def test_what_needs_an_engine_is_parsed(row: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ROOT / row["test"]).exists()
    parsed(filled(row["command"]), monkeypatch)


@pytest.mark.parametrize("command", sorted({span for page in PAGES for span in spans(page)}))
def test_what_the_text_names_is_parsed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole commands are parsed; a name alone, or with an option alone, is one that there is."""
    words = command.removeprefix("kubectl ").split()[1:]
    names = cli.PLUGIN if command.startswith("kubectl ") else cli.COMMANDS
    assert words[0] in names
    if any(word[0] == "-" or word.isupper() for word in words[2:]) or words[1:2] == ["FILE"]:
        parsed(command, monkeypatch)


def parsed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the real parser, whose command then does nothing."""
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(command)]
    called: list[argparse.Namespace] = []
    program = cli.plugin if words[0] == "kubectl" else cli.main
    arguments = words[2:] if words[0] == "kubectl" else words[1:]
    module = importlib.import_module(f"paceline.cli.{cli.COMMANDS[arguments[0]].module}")
    monkeypatch.setattr(module, "run", lambda args: called.append(args) or 0)
    assert program(arguments) == 0
    assert [one.command for one in called] == arguments[:1]


@pytest.mark.parametrize("row", rows("make"), ids=lambda row: row["command"])
def test_a_target_of_make_is_known(row: dict[str, str]) -> None:
    targets = [*row["command"].split()[1:], *row.get("target", "").split()]
    ended = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("row", rows("elsewhere"), ids=lambda row: row["command"])
def test_what_is_done_elsewhere_is_there(row: dict[str, str]) -> None:
    test, _, name = row["test"].partition("::")
    if test.startswith("make "):
        assert re.search(rf"(?m)^{test.removeprefix('make ')}:", (ROOT / "Makefile").read_text())
    else:
        assert f"def {name}(" in (ROOT / test).read_text() if name else (ROOT / test).exists()
