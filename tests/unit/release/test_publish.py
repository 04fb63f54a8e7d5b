"""dev/release/publish against a registry on loopback: what it does before it builds anything."""

import os
import subprocess
from pathlib import Path

import pytest
from dev.release import versions
from dev.release.dry_run import SCRIPTS, TOOLS, registry


@pytest.fixture(scope="module")
def crane() -> Path:
    """As a release takes its tools."""
    subprocess.run([SCRIPTS / "tools", "crane"], check=True, capture_output=True, timeout=280)
    return TOOLS / "crane"


@pytest.mark.parametrize("name", ["paceline", "charts/paceline"])
def test_a_version_that_is_published_is_not_replaced(crane: Path, tmp_path: Path, name: str) -> None:
    """As who runs the workflow of an old tag again would: the same version, and other digests."""
    file = tmp_path / "file"
    file.write_text("what somebody has installed")
    subprocess.run(["tar", "-C", tmp_path, "-cf", tmp_path / "layer.tar", "file"], check=True)
    with registry("127.0.0.1", tmp_path / "log") as address:
        there = f"{address}/{name}:{versions.current()}"
        append = [crane, "append", "--new_layer", tmp_path / "layer.tar", "--new_tag", there]
        subprocess.run(append, check=True, capture_output=True)
        before = subprocess.run([crane, "digest", there], check=True, capture_output=True, text=True).stdout
        env = os.environ | {
            "REGISTRY": address,
            "PLAIN_HTTP": "yes",
            "OUT": str(tmp_path / "out"),
            "BASE": f"{address}/nothing:1",
        }
        done = subprocess.run([SCRIPTS / "publish"], env=env, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode != 0
        assert f"{there} is published already" in done.stderr
        assert subprocess.run([crane, "digest", there], check=True, capture_output=True, text=True).stdout == before
