"""Arms that differ in their engine alone, on the real servers: a flag, and with VLLM_DIR another engine."""

import os
from pathlib import Path

import pytest
from tests.sglang.measured import Measured, measured

pytestmark = pytest.mark.timeout(3600)
BOTH = ["flags", *(["engines"] if "VLLM_DIR" in os.environ else [])]


@pytest.fixture(scope="module", params=BOTH)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    vllm = Path(os.environ.get("VLLM_DIR", "")) / "venv" / "bin" / "python"
    command = f"vllm={vllm} -m vllm.entrypoints.cli.main serve"
    options = ("--engine-command", command) if request.param == "engines" else ()
    return measured(request.param, tmp_path_factory.mktemp(request.param), *options)


def test_every_point_is_evidence_and_all_tokens_are_counted_alike(found: Measured) -> None:
    for record in found.rounds:
        assert {point["why"] for point in record["points"]} == {""}
        assert len({point["outputTokens"] for point in record["points"]}) == 1


def test_the_faster_one_is_promoted_and_its_verdict_says_in_what_it_differs(found: Measured) -> None:
    verdict = found.run["status"]["verdict"]
    assert verdict["outcome"] == "Promote"
    differs = {"whole": "--chunked-prefill-size", "vllm": "engine, image"}[verdict["winner"]]
    assert f"{verdict['winner']} differs in {differs}" in verdict["message"]
