"""What the image is built of."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
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
