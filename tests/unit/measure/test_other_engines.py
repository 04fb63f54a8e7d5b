"""`paceline measure --emulated` of a release beside another, and of SGLang beside vLLM: real processes on loopback."""

from pathlib import Path

import pytest
from tests.unit.measure.test_story import PATIENCE, UPSTREAM, measure, question, remembered, the_run

OLDER, VLLM = "lmsysorg/sglang:v0.5.6", "vllm/vllm-openai:v0.33.0"


@pytest.mark.timeout(600)
def test_a_release_beside_another_and_beside_another_engine(tmp_path: Path) -> None:
    others = [{"name": "older", "engine": {"image": OLDER}}, {"name": "vllm", "engine": {"image": VLLM}}]
    question(tmp_path, UPSTREAM, candidates=others)
    process = measure(tmp_path)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 10, 11), output
    points = [point for record in remembered(tmp_path) for point in record["points"]]
    assert {point["arm"] for point in points} == {"baseline", "older", "vllm"}
    assert [point["why"] for point in points if not point["valid"]] == []
    status = the_run(tmp_path)["status"]
    differs = {verdict["arm"]: verdict["differs"] for verdict in status["armVerdicts"]}
    assert differs["older"][0].startswith(f"image is {OLDER}, but ")
    assert any(text.startswith("version is 0.5.6+emulated, but ") for text in differs["older"])
    assert differs["vllm"][0].startswith("engine is vLLM 0.33.0, but SGLang ")
    assert "older differs in image, version" in status["verdict"]["message"]
    print(output)
