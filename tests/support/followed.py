"""The commands of docs/migration.md, step by step, as a person would type them."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "migration.md"


def step(number: int) -> str:
    """The commands of a section."""
    (section,) = re.findall(rf"(?ms)^## {number}\. .*?(?=^## |\Z)", DOCUMENT.read_text())
    return "\n".join(line.removeprefix("    ") for line in section.splitlines() if line.startswith("    "))


def follow(
    directory: Path, kubectl: str, *numbers: int, old: str, name: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    """By a shell that stops at the first error. `kubectl` is a command with all that it needs to find the cluster;
    `old` and `name` are what the document calls OLD and NAME."""
    tools = directory / "bin"
    tools.mkdir(exist_ok=True)
    for program, line in {"kubectl": kubectl, "paceline": f"{sys.executable} -m paceline.cli"}.items():
        (tools / program).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        (tools / program).chmod(0o755)
    return subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", "\n".join(map(step, numbers))],
        cwd=directory,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OLD": old, "NAME": name},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
