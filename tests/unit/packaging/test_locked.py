"""dev/locked.py: the lock files' check, bill of materials and audit; and what the image is built of."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("locked", ROOT / "dev" / "locked.py")
assert SPEC
assert SPEC.loader
locked = importlib.util.module_from_spec(SPEC)
sys.modules["locked"] = locked
SPEC.loader.exec_module(locked)
HASH = "a" * 64


def test_everything_is_locked_by_hash_with_a_known_licence() -> None:
    assert list(locked.faults()) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("aiohttp==3.14.5", "aiohttp==3.14.5 has no hash"),
        (f"aiohttp>=3 --hash=sha256:{HASH}", "not a version with hashes: aiohttp>=3"),
        ("git+https://example.com/x", "not a version with hashes: git+https://example.com/x"),
        (f"no-such-package==1 --hash=sha256:{HASH}", "licence 'unknown' is not a known one"),
    ],
)
def test_what_is_not_locked_or_of_no_known_licence_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, says: str
) -> None:
    for name in locked.LOCKS:
        (tmp_path / name).write_text(f"# made by a tool\n{line}\n    # via x\n")
    monkeypatch.setattr(locked, "ROOT", tmp_path)
    assert any(says in fault for fault in locked.faults()), list(locked.faults())


def test_the_bill_of_materials_names_every_package_of_the_image_with_its_hashes(tmp_path: Path) -> None:
    assert locked.main(["sbom", str(tmp_path / "build" / "sbom.json")]) == 0
    bill = json.loads((tmp_path / "build" / "sbom.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {one["purl"]: {each["content"] for each in one["hashes"]} for one in bill["components"]}
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    for name, version, hashes in re.findall(r"^([\w.-]+)==(\S+)(.*)$", text, re.MULTILINE):
        assert listed.pop(f"pkg:pypi/{name}@{version}") == set(re.findall(r"sha256:(\w+)", hashes))
    assert listed == {}


ONE = locked.Locked(name="a", version="1", hashes=(HASH,), lock="x")


def index(files: list[dict[str, Any]], vulnerabilities: list[dict[str, Any]] | None) -> Any:
    def ask(path: str) -> dict[str, Any]:
        if path.startswith("/simple/"):
            return {"files": files}
        if vulnerabilities is None:
            raise OSError("404")
        return {"vulnerabilities": vulnerabilities}

    return ask


OURS = {"hashes": {"sha256": HASH}, "yanked": False}


@pytest.mark.parametrize(
    ("files", "known", "wrong", "asked"),
    [
        ([OURS], [], [], True),
        ([OURS], None, [], False),
        ([{**OURS, "yanked": "broken"}], [], ["a==1: withdrawn: broken"], True),
        ([{"hashes": {"sha256": "b"}}], [], ["a==1: the index has no file with any of its hashes"], True),
        ([OURS], [{"id": "X-1", "summary": "runs code"}], ["a==1: X-1: runs code"], True),
    ],
)
def test_an_audit_tells_what_the_index_knows_and_whether_it_was_asked(
    files: list[dict[str, Any]], known: Any, wrong: list[str], asked: bool
) -> None:
    assert locked.judged(ONE, index(files, known)) == (wrong, asked)


def test_an_audit_that_cannot_ask_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(locked, "INDEX", "http://127.0.0.1:1")
    assert locked.main(["audit"]) == 2
    assert "not audited: the index does not answer" in capsys.readouterr().err


STAGES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").split("\nFROM ")
COPY = re.compile(r"^COPY (?:--from=\S+ )?(.*) \S+$", re.MULTILINE)


def stage(name: str) -> str:
    (one,) = (stage for stage in STAGES if f" AS {name}\n" in stage)
    return one


def test_the_image_is_built_of_what_is_locked_runs_as_nobody_and_has_no_emulator() -> None:
    ours = stage("paceline")
    assert "USER 65532:65532" in ours
    assert COPY.findall(ours) == ["/opt/venv", "/app"]
    assert COPY.findall(stage("code")) == ["operator/paceline"]
    assert COPY.findall(stage("build")) == ["requirements.lock"]
    installs = [line for line in "\n".join(STAGES).splitlines() if "pip install" in line]
    assert installs
    assert all(one.count("pip install") == one.count("--require-hashes") for one in installs)


def test_nothing_of_another_architecture_is_executed() -> None:
    """So that one machine builds the image for all: what runs a program is on the machine that builds."""
    assert stage("build").startswith("--platform=$BUILDPLATFORM ")
    assert stage("code").startswith("build AS code")
    assert "\nRUN " not in stage("paceline")
    installs = re.findall(r"pip install .*?(?=&&|$)", stage("build"), re.MULTILINE)
    assert len(installs) == 1
    assert all("$wheels --target" in one for one in installs)
    assert "--only-binary=:all:" in stage("build")
