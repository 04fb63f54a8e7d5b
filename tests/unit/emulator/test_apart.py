"""Emulator and operator are two packages: neither imports the other, and what is installed of one lacks the other."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
OPERATOR, EMULATOR = ROOT / "operator" / "paceline", ROOT / "paceline_emulator"
STAGE = re.compile(r"^FROM (?:--platform=\S+ )?(\S+) AS (\S+)$(.*?)(?=^FROM |\Z)", re.MULTILINE | re.DOTALL)
COPIED = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)


def imported(package: Path) -> set[str]:
    """Top-level names of every import of every module."""
    nodes = [node for path in package.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.split(".")[0] for name in plain | {str(n.module) for n in nodes if isinstance(n, ast.ImportFrom)}}


def test_neither_imports_the_other() -> None:
    assert "paceline_emulator" not in imported(OPERATOR)
    assert "paceline" not in imported(EMULATOR)


def test_the_operators_wheel_has_the_operator_alone(tmp_path: Path) -> None:
    names = wheel(tmp_path, "pyproject.toml", "README.md", "operator", "paceline_emulator")
    assert {"paceline/cli/__init__.py", "paceline/render/wrapper.sh"} <= names
    assert {name.split("/")[0] for name in names} == {"paceline", "paceline-0.1.0.dist-info"}
    assert not {"paceline/emulator/__init__.py", "paceline/hub/__init__.py"} & names


def test_the_emulators_wheel_has_its_data(tmp_path: Path) -> None:
    names = wheel(tmp_path, *(path.name for path in EMULATOR.iterdir()), root=EMULATOR)
    packed = {path.relative_to(ROOT) for path in EMULATOR.rglob("*") if path.suffix in (".py", ".json")}
    assert {str(path) for path in packed if "build" not in path.parts} <= names


def test_the_operators_image_has_the_operator_alone() -> None:
    """Of a stage: what it copies of this repository, and the stage that it is made from."""
    stages = STAGE.findall((ROOT / "Dockerfile").read_text())
    copied = {name: (base, COPIED.findall(text)) for base, name, text in stages}
    assert copied["build"] == ("${BASE}", ["requirements.lock"])
    assert copied["code"] == ("build", ["operator/paceline"])
    assert copied["paceline"] == ("${BASE}", [])  # of this repository: the rest is of these two stages
    assert copied["sglang-emulator"] == ("${BASE}", ["paceline_emulator", "dev/emulator-image"])


def wheel(scratch: Path, *files: str, root: Path = ROOT) -> set[str]:
    """Names in the wheel that is built of these files of `root`."""
    ignored = shutil.ignore_patterns("*.egg-info", "__pycache__", "build")
    for file in files:
        source, to = root / file, scratch / "sources" / file
        to.parent.mkdir(exist_ok=True)
        if source.is_file():
            shutil.copy(source, to)
        elif file not in ignored(str(root), [file]):
            shutil.copytree(source, to, ignore=ignored)
    code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(scratch)], cwd=scratch / "sources", check=True, capture_output=True)
    with zipfile.ZipFile(next(scratch.glob("*.whl"))) as built:
        return set(built.namelist())
