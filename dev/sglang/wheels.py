"""The published wheels of SGLang, kept in build/sglang-wheels."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "operator/paceline/engines/sglang/data"
FOLDER = ROOT / "build/sglang-wheels"


def versions() -> tuple[str, ...]:
    """From the oldest on that Paceline knows, the release of the first published heads (0.4.5)."""
    return tuple(json.loads((DATA / "flags.json").read_text())["releases"])


def wheel(version: str) -> Path:
    """Downloaded by pip unless it is there; nothing is installed."""
    if not (found := list(FOLDER.glob(f"sglang-{version}-*.whl"))):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(FOLDER)]
        subprocess.run([*command, "--only-binary", ":all:", f"sglang=={version}"], check=True)
        found = list(FOLDER.glob(f"sglang-{version}-*.whl"))
    return found[0]
