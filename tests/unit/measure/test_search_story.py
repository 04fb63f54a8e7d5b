"""`paceline measure --emulated` of a pool that searches: killed in its search and in its gate, real processes."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.measure.test_story import (
    PATIENCE,
    measure,
    question,
    remembered,
    the_run,
    until_a_server_of_the_second_round_runs,
)

from paceline.core import purpose_of

CHAINS = {"numSteps": {"min": 1, "max": 3}, "topK": {"min": 1, "max": 1}, "numDraftTokens": {"min": 2, "max": 4}}


def of_chains(directory: Path) -> None:
    """The short question, of a pool that searches among three chains."""
    file = question(directory)
    manifest: dict[str, Any] = yaml.safe_load(file.read_text())
    (pool,) = manifest["spec"]["pools"]
    del manifest["spec"]["candidates"]
    pool.pop("candidates", None)
    pool["search"] = CHAINS
    manifest["spec"]["engine"]["env"] = [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"}]
    file.write_text(yaml.safe_dump(manifest))


def killed_in_the_second_round(directory: Path, logs: str) -> None:
    process = measure(directory)
    server = until_a_server_of_the_second_round_runs(directory, process, logs)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    assert server


@pytest.mark.timeout(900)
def test_a_search_and_its_gate_go_on_where_they_were_killed(tmp_path: Path) -> None:
    of_chains(tmp_path)
    killed_in_the_second_round(tmp_path, "run.search.d")
    (searched,) = remembered(tmp_path, "run.search.yaml")
    assert not (tmp_path / "run.yaml").exists()
    killed_in_the_second_round(tmp_path, "run.d")
    (compared,) = remembered(tmp_path)

    again = measure(tmp_path)
    output, _ = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, output
    search = the_run(tmp_path, "run.search.yaml")
    gate = the_run(tmp_path)
    assert search["rounds"][0] == searched  # not measured again
    assert gate["rounds"][0] == compared
    found = search["status"]["verdict"]["winner"]
    assert [arm["name"] for arm in gate["spec"]["arms"]] == ["baseline", found]
    assert (purpose_of(search["spec"]), purpose_of(gate["spec"])) == ("Search", "Gate")
    assert ("measured" in search["spec"], "measured" in gate["spec"]) == (False, True)
    assert gate["status"]["verdict"]["outcome"] == "Promote"
    assert f"Emulated: Found {found}: " in output
    assert f"Emulated: Promote {found}: " in output
    assert "3 candidates" in (tmp_path / "report.html").read_text()


def test_a_file_of_another_run_is_told_before_anything_is_searched(tmp_path: Path) -> None:
    of_chains(tmp_path)
    other = {"kind": "BenchmarkRun", "metadata": {"name": "another"}, "spec": {}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(other))
    process = measure(tmp_path)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "run.yaml: it holds another, but no search in" in output
    assert not (tmp_path / "run.search.yaml").exists()
