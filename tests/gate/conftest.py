"""`paceline gate` in this process."""

import argparse
from pathlib import Path

import pytest
from tests.support.gate_cases import Run

from paceline.cli import gate as command


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """File name, its text → exit code, what was printed, what was complained about (the directory cut off)."""

    def go(name: str, text: str) -> tuple[int, str, str]:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        parser = argparse.ArgumentParser()
        command.add(parser.add_subparsers())
        args = parser.parse_args(["gate", str(file)])
        code = args.run(args)
        said = capsys.readouterr()
        return code, said.out, said.err.replace(f"{tmp_path}/", "")

    return go
