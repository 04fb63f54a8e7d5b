"""One question measured by the operator in the cluster and by `paceline measure` beside it: both find the same.

At the same time, so that both find the machine equally busy. Their noise is not the same: its seed is the pod's uid.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.example import emulated, small
from tests.support.agreement import disagreements, markdown
from tests.support.kubernetes import Manifest, Namespace
from tests.support.queries import finished, lines_in, lines_of, run_of

from paceline.measure.record import load_run

NAME = "agreed"
NOISE = "0.003"
"""Of a point, as in the demo."""
SEED: Manifest = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
ELSEWHERE = {"host", "port", "model_path", "tokenizer_path", "speculative_draft_model_path"}
"""Arguments that name the place of a server and of its models."""
VERDICT_SECONDS = 240


def question(hub: str) -> Manifest:
    """Four rounds, and so sure a decision that of a thousand such pairs a few have an estimate outside of the other's
    interval: a difference of two means has 1.4 times the noise of one."""
    return small(
        NAME,
        hub,
        engine={"env": [*emulated(NOISE_CV=NOISE), SEED]},
        benchmark={
            "datasets": [{"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 48}],
        },
        gate={"confidence": "99.95%", "decideAfterRounds": [4]},
    )


def measure(text: str, directory: Path) -> "subprocess.Popen[bytes]":
    """As a person would, of a file; `said` is what it prints."""
    file = directory / "question.yaml"
    file.write_text(text)
    command = [sys.executable, "-m", "paceline.cli", "measure", str(file), "--emulated"]
    with (directory / "said").open("w") as said:
        return subprocess.Popen([*command, "-o", str(directory / "run.yaml")], stdout=said, stderr=said)


@pytest.mark.timeout(360)
def test_an_operator_and_a_person_find_the_same(here: Namespace, hub: str, tmp_path: Path) -> None:
    manifest = question(hub)
    here.apply(manifest)
    person = measure(yaml.safe_dump(manifest), tmp_path)
    try:
        run = here.wait("the operator's run", run_of(here, NAME), VERDICT_SECONDS)
        operators = here.wait("the operator's verdict", finished(here, run), VERDICT_SECONDS)
        code = person.wait(VERDICT_SECONDS)
    finally:
        person.terminate()
        person.wait()
    assert code == 0, (tmp_path / "said").read_text()  # Promote
    persons = load_run(tmp_path / "run.yaml")
    assert persons
    print(markdown(operators, persons, ("the operator", "`paceline measure`")))
    assert disagreements(operators, persons) == []
    assert operators["status"]["verdict"]["winner"] == "wide"

    again = measure(here.kubectl("get", "bench", operators["metadata"]["name"], "-o", "yaml"), tmp_path)
    assert again.wait(VERDICT_SECONDS) == 0
    assert "run.yaml: it has its end already" in (tmp_path / "said").read_text(), "the operator's run asks the same"

    last = max((tmp_path / "run.d" / "results").rglob("*.jsonl.gz"))
    theirs, ours = arguments(lines_of(here, operators["rounds"][-1])), arguments(lines_in(last.read_bytes()))
    assert theirs.keys() == ours.keys() == {"baseline", "wide"}
    for arm, mine in ours.items():
        differ = {name for name in theirs[arm] | mine if theirs[arm].get(name) != mine.get(name)}
        assert differ <= ELSEWHERE
        for name in differ - {"host", "port"}:
            assert Path(theirs[arm][name]).name == Path(mine[name]).name, "the commit"


def arguments(lines: list[Manifest]) -> Mapping[str, Mapping[str, Any]]:
    """Arm → all arguments as its server resolved them."""
    return {line["arm"]: line["resolved"] for line in lines if "resolved" in line}
