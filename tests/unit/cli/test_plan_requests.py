"""What `paceline plan` says of the requests of rounds after the first."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.rendered import example

from paceline.cli import main


def said(manifest: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The line of the load at 32."""
    (folder / "file.yaml").write_text(yaml.safe_dump(manifest))
    assert main(["plan", str(folder / "file.yaml")]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if "@32 " in line)


def with_prompts(source: str, **benchmark: Any) -> dict[str, Any]:
    """The example's throughput pool, measured on one set."""
    manifest = example("qwen3-coder-next")
    manifest["spec"]["pools"] = [manifest["spec"]["pools"][1]]
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "mine", "source": source}], **benchmark}
    return manifest


def test_an_own_set_at_32_gets_as_many_as_an_h200s_noise_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """(2 x 0.28^2 + 0.15^2) / (2 x 0.01^2) = 896.5; three arms: looks after 3, 6 and 9 rounds, so ten parts."""
    line = said(with_prompts("pvc://sets/mine.json"), tmp_path, capsys)
    assert (
        "160 requests of at most 512 tokens (897 after the first round, if the noise of its baseline asks for them "
        in line
    )
    assert "and the set has 8970)" in line


@pytest.mark.parametrize(
    "manifest",
    [
        with_prompts("builtin://code"),
        with_prompts("pvc://sets/mine.json", budget={"gpuHours": "9"}),
        with_prompts("pvc://sets/mine.json", timeouts={"workload": "10m"}),
    ],
    ids=["a set that is too small", "a budget", "a time limit"],
)
def test_no_more_than_in_the_first_round(
    manifest: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "after the first round" not in said(manifest, tmp_path, capsys)
