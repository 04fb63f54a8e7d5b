"""`paceline measure --emulated` with a load that moves: real processes on loopback."""

from pathlib import Path

import yaml
from tests.unit.measure.test_story import PATIENCE, measure, question, remembered, the_run


def test_a_ramp_is_measured_without_a_cluster(tmp_path: Path) -> None:
    file = question(tmp_path)
    manifest = yaml.safe_load(file.read_text())
    manifest["spec"]["pools"][0]["load"] = [{"ramp": {"from": 1, "to": 4}}]
    manifest["spec"]["benchmark"]["datasets"][0] |= {"requests": 20}
    file.write_text(yaml.safe_dump(manifest))
    process = measure(tmp_path)
    said, _ = process.communicate(timeout=PATIENCE)
    rounds = remembered(tmp_path)
    assert len(rounds) == 2, said
    points = [point for entry in rounds for point in entry["points"]]
    assert {point["workload"] for point in points} == {"code@1-4"}
    assert all(point["valid"] and point["completed"] == 20 and point["requestSpeed"] for point in points), points
    verdict = the_run(tmp_path)["status"]["verdict"]
    assert "code@1-4 is a ramp: requests under way rise from 1 to 4 and fall back" in verdict["message"]
