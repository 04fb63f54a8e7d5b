"""dev/gpu/pack and dev/gpu/run, with a small kit, and programs in place of models.py, Paceline and nvidia-smi.

The real ones run together in `make rehearse-gpu`, up to the missing GPU."""

import gzip
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from paceline.cli import main

GPU = Path(__file__).parents[3] / "dev" / "gpu"
H200 = "GPU-4605e639-c232-4456-faa3-a11ce0bc534d"
MEASURED = gzip.decompress((GPU / "h200-2026-11-26" / "run.yaml.gz").read_bytes())


@pytest.fixture(scope="module")
def pack() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("pack", str(GPU / "pack"))
    spec = importlib.util.spec_from_loader("pack", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class There:
    """The machine with the GPU: a kit of two parts, and calls of `run` that find what earlier ones left."""

    def __init__(self, home: Path, pack: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.calls = home, home / "calls"
        seeds = pack.archive([("seeds/functions.sharegpt.json", b"[]"), ("site/one.py", b"")])
        monkeypatch.setattr(pack, "PART_MB", len(seeds) / 1e6)
        pack.write(home / "kit", {"seeds": seeds, "other": pack.archive([("paceline/two.py", b"")])})
        self.program("bin/nvidia-smi", f'case "$*" in *uuid*) echo {H200} ;; esac')
        self.measures("exit 10")

    def program(self, name: str, script: str) -> None:
        path = self.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{script}\n")
        path.chmod(0o755)

    def measures(self, script: str) -> None:
        """`$run` is the file of -o in the script that stands for `paceline measure`."""
        self.program("python", f"""
            case "$*" in
            */models.py*) mkdir -p "$3"; echo models >>{self.calls} ;;
            *"cli measure"*)
                run=$(sed 's/.* -o \\([^ ]*\\) .*/\\1/' <<<"$*")
                echo "measure $(basename "$4") $([ -e "$run" ] && echo again)" >>{self.calls}
                cp {self.home}/measured "$run"; {script} ;;
            */sampler.py*) ;;
            *) exec {sys.executable} "$@" ;;
            esac""")  # fmt: skip
        (self.home / "measured").write_bytes(MEASURED)

    def call(self, *arguments: str | Path, out: str = "out", **environ: str) -> tuple[int, str]:
        """Exit code and what was printed."""
        given = {
            "PATH": f"{self.home}/bin:{os.environ['PATH']}", "OUT": f"{self.home}/{out}", "STATE": f"{self.home}/state",
            "MODELS": f"{self.home}/models", "PYTHON": f"{self.home}/python",
        }  # fmt: skip
        command = [str(GPU / "run"), *map(str, arguments or (self.home / "kit",))]
        ended = subprocess.run(command, env=os.environ | given | environ, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def called(self) -> list[str]:
        return [line.strip() for line in self.calls.read_text().splitlines()]


@pytest.fixture
def there(tmp_path: Path, pack: ModuleType, monkeypatch: pytest.MonkeyPatch) -> There:
    return There(tmp_path, pack, monkeypatch)


def test_two_arms_are_measured_first_and_three_in_the_next_call(there: There) -> None:
    assert [there.call()[0] for _ in range(3)] == [10, 10, 0]
    assert there.called() == ["models", "measure two.yaml", "measure three.yaml"]
    assert (there.home / "out/two/run.yaml").read_bytes() == MEASURED


def test_the_report_reads_what_a_call_leaves(there: There) -> None:
    there.program(
        "bin/nvidia-smi", f'case "$*" in *uuid*) echo {H200} ;; *) echo "NVIDIA H200, 143771 MiB, 700 W" ;; esac'
    )
    there.call()
    command = [sys.executable, str(GPU / "report.py"), str(there.home / "out/two")]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Machine: NVIDIA H200, 143771 MiB, 700 W, " in page
    assert "**No verdict**: 2 rounds" in page


def test_every_step_says_its_time_and_how_it_ended(there: There) -> None:
    there.call()
    steps = (there.home / "out/steps.txt").read_text().splitlines()
    assert [step.partition(":")[0] for step in steps] == ["machine", "unpack", "models", "two"]
    assert steps[-1].endswith(" s, exit 10")


def test_parts_may_come_one_a_call(there: There) -> None:
    for number in (1, 2):
        (there.home / f"only{number}").mkdir()
        (there.home / f"kit/part{number}").rename(there.home / f"only{number}/part{number}")
    code, said = there.call(there.home / "only1")
    assert code == 3
    assert "part2" in said
    assert not there.calls.exists()
    assert there.call(there.home / "only2")[0] == 10
    assert (there.home / "state/paceline/two.py").exists()
    assert (there.home / "state/site/one.py").exists()


def test_a_damaged_file_is_named_and_nothing_is_measured(there: There) -> None:
    (file,) = (there.home / "kit").glob("part*/seeds.tar.xz")
    file.write_bytes(b"half of it")
    code, said = there.call()
    assert code == 1
    assert "seeds.tar.xz" in said
    assert not there.calls.exists()


def test_what_was_interrupted_is_gone_on_with(there: There) -> None:
    there.measures("exit 130")
    assert there.call(out="first")[0] == 130
    assert there.call(out="second")[0] == 130
    assert there.called() == ["models", "measure two.yaml", "measure two.yaml again"]


def test_an_error_is_no_verdict_and_begins_anew(there: There) -> None:
    there.measures("exit 12")
    assert there.call(out="first")[0] == 12
    assert (there.home / "first/two/run.yaml").exists()
    assert there.call(out="second")[0] == 12
    assert there.called() == ["models", "measure two.yaml", "measure two.yaml"]


@pytest.mark.parametrize(("gpu", "begins"), [(H200, "measure two.yaml again"), ("GPU-another", "measure two.yaml")])
def test_an_earlier_run_is_gone_on_with_on_the_same_gpu_only(there: There, gpu: str, begins: str) -> None:
    (there.home / "earlier/two").mkdir(parents=True)
    (there.home / "earlier/two/run.yaml").write_bytes(MEASURED)
    there.program("bin/nvidia-smi", f'case "$*" in *uuid*) echo {gpu} ;; esac')
    _, said = there.call(there.home / "kit", there.home / "earlier")
    assert there.called() == ["models", begins]
    assert (f"was begun on {H200} and is not gone on with on {gpu}" in said) is (gpu != H200)


def test_it_ends_by_itself(there: There) -> None:
    there.measures("exec sleep 60")
    assert there.call(LIMIT="4")[0] == 124
    assert re.search(r"two: \d s, exit 124", (there.home / "out/steps.txt").read_text())
    assert there.call(LIMIT="0", out="next")[0] == 124
    assert there.called() == ["models", "measure two.yaml"]


@pytest.mark.parametrize("question", ["two.yaml", "three.yaml"])
def test_the_questions_are_admitted(question: str) -> None:
    assert main(["validate", str(GPU / question)]) == 0


def test_without_seeds_of_models_pack_says_where_it_looked(tmp_path: Path) -> None:
    command = [sys.executable, str(GPU / "pack"), str(tmp_path / "kit"), "--shared", str(tmp_path / "none")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "has no small, eagle3; name the folder by --shared" in ended.stderr
    assert not (tmp_path / "kit").exists()


def test_prompts_are_heads_of_functions_and_each_is_another(pack: ModuleType) -> None:
    asked = json.loads(pack.prompts())
    heads = [one["conversations"][0]["value"] for one in asked]
    assert len(set(heads)) == 600
    assert all(head.startswith(("def ", "async def ")) for head in heads)


def test_what_is_packed_for_paceline_is_what_is_locked(pack: ModuleType) -> None:
    lines = pack.locked("requirements.lock", pack.MEASURE_IMPORTS)
    assert lines.count("==") == len(pack.MEASURE_IMPORTS)
    assert all(f"{name}==" in lines for name in pack.MEASURE_IMPORTS)
    assert lines.count("--hash=sha256:") >= lines.count("==")


def test_a_file_that_is_too_large_for_a_part_is_named(
    pack: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "PART_MB", 0.0005)
    with pytest.raises(SystemExit, match="large alone has"):
        pack.write(tmp_path, {"large": bytes(501)})
