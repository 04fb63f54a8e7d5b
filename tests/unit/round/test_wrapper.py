"""PID 1 of a round's server container, run by dash as it is, with real processes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paceline import render

WRAPPER = Path(render.__file__).with_name("wrapper.sh")
QUICK = {
    "PACELINE_HEARTBEAT_SECONDS": "2",
    "PACELINE_CLIENT_SECONDS": "4",
    "PACELINE_GRACE_SECONDS": "1",
    "PACELINE_GPU_SECONDS": "3",
}


@dataclass
class Wrapped:
    """The wrapper at work, and what a client does to it."""

    process: "subprocess.Popen[bytes]"
    ctl: Path
    beats: int = 0
    seen: list[int] = field(default_factory=list)

    def tell(self, name: str, text: str = "") -> None:
        """As the client writes: under another name, then renamed."""
        hidden = self.ctl / f".client-{name}"
        hidden.write_text(text)
        hidden.rename(self.ctl / name)

    def until(self, ready: Callable[[], object], *, beating: bool = True, seconds: float = 15) -> None:
        """Wait, with a heartbeat."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"not in {seconds} s: {sorted(p.name for p in self.ctl.iterdir())}"
            if beating:
                self.beats += 1
                self.tell("heartbeat", str(self.beats))
            time.sleep(0.05)

    def start(self, *argv: str) -> int:
        """Start a server; its pid, or 0 if it has ended already."""
        (self.ctl / "exit").unlink(missing_ok=True)
        self.tell("start", f"exec {shlex.join(argv)}\n")
        self.until(lambda: (self.ctl / "pid").exists() or (self.ctl / "exit").exists())
        try:
            self.seen.append(int((self.ctl / "pid").read_text()))
        except FileNotFoundError:
            return 0
        return self.seen[-1]

    def exit(self) -> str:
        """How the server ended, once it has."""
        self.until((self.ctl / "exit").exists)
        return (self.ctl / "exit").read_text().strip()

    def log(self) -> str:
        """What the server has said so far."""
        log = self.ctl / "log"
        return log.read_text() if log.exists() else ""

    def ended(self, **how: bool) -> int:
        """The wrapper's own exit code, once it has ended."""
        self.until(lambda: self.process.poll() is not None, **how)
        return self.process.returncode


def alive(pid: int) -> bool:
    """More than a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.fixture
def wrap(tmp_path: Path) -> Iterator[Callable[..., Wrapped]]:
    made: list[Wrapped] = []

    def start(**env: str) -> Wrapped:
        ctl = tmp_path / "ctl"
        ctl.mkdir()
        environment: Mapping[str, str] = {**os.environ, **QUICK, "PACELINE_CTL": str(ctl), **env}
        out = (tmp_path / "stdout").open("wb")
        process = subprocess.Popen(["dash", "-c", WRAPPER.read_text()], env=environment, stdout=out, stderr=out)
        made.append(Wrapped(process, ctl))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait()
        for pid in filter(alive, one.seen):
            os.killpg(pid, signal.SIGKILL)


Wrap = Callable[..., Wrapped]


def test_arms_run_one_after_another_and_done_is_the_end(wrap: Wrap, tmp_path: Path) -> None:
    wrapped = wrap()
    first = wrapped.start(sys.executable, "-u", "-c", "print('one of two'); import time; time.sleep(60)")
    wrapped.until(lambda: "one of two" in wrapped.log())
    wrapped.tell("stop")
    assert wrapped.exit() == "143 stopped"
    assert not alive(first)
    second = wrapped.start(sys.executable, "-u", "-c", "import time; print('two of two'); time.sleep(60)")
    assert second != first
    wrapped.until(lambda: wrapped.log() == "two of two\n")
    wrapped.tell("done")
    assert wrapped.ended() == 0
    assert not alive(second)
    assert (tmp_path / "stdout").read_text() == "one of two\ntwo of two\n"


def test_the_argv_arrives_byte_for_byte(wrap: Wrap) -> None:
    wrapped = wrap()
    argv = ["a b", "$HOME", "it's", '{"k": "v"}', "*", "ä\n"]
    wrapped.start(sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *argv)
    assert wrapped.exit() == "0"
    assert json.loads(wrapped.log()) == argv


def test_a_server_that_dies_by_itself(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.start(sys.executable, "-c", "import sys; sys.exit('error: unrecognized arguments: --bogus')")
    assert wrapped.exit() == "1"
    assert wrapped.log() == "error: unrecognized arguments: --bogus\n"


def test_a_command_that_is_not_there(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.start("/no/such/engine")
    assert wrapped.exit() == "127"
    assert "/no/such/engine" in wrapped.log()


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if not child:
    os.setpgid(0, 0)  # a group of its own, in the session still
os.write(1, b'%d\\n' % os.getpid())
time.sleep(60)
"""


def test_children_that_ignore_sigterm_are_gone_too(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.start(sys.executable, "-c", STUBBORN)
    wrapped.until(lambda: len(wrapped.log().split()) == 2)
    pids = [int(pid) for pid in wrapped.log().split()]
    wrapped.tell("stop")
    assert wrapped.exit() == "137 stopped"
    assert not any(map(alive, pids))


ORPHANED = "import os, time\npid = os.fork()\nif pid: print(pid, flush=True); os._exit(3)\ntime.sleep(60)"


def test_a_dead_leader_takes_its_children_along(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.start(sys.executable, "-c", ORPHANED)
    assert wrapped.exit() == "3"
    assert not alive(int(wrapped.log()))


def test_a_heartbeat_that_stands_still_ends_the_server(wrap: Wrap) -> None:
    wrapped = wrap()
    pid = wrapped.start(sys.executable, "-c", STUBBORN)
    before = time.monotonic()
    assert wrapped.ended(beating=False) == 70
    assert 1 < time.monotonic() - before < 8
    assert not alive(pid)


def test_no_client_at_all(wrap: Wrap, tmp_path: Path) -> None:
    assert wrap().ended(beating=False) == 70
    assert (tmp_path / "stdout").read_text() == "paceline: no sign of the client for 4 s\n"


def test_sigterm_ends_the_server(wrap: Wrap) -> None:
    wrapped = wrap()
    pid = wrapped.start(sys.executable, "-c", STUBBORN)
    wrapped.process.terminate()
    assert wrapped.ended() == 143
    assert not alive(pid)


NVIDIA_SMI = """#!/bin/sh
case $1 in
*driver_version) echo 550.127.08 ; echo 550.127.08 ;;
*memory.used) cat "{memory}" ;;
*uuid) printf 'GPU-a\\nGPU-b\\n' ;;
esac
"""


def test_gpus_are_named_and_waited_for(wrap: Wrap, tmp_path: Path) -> None:
    """The next arm must not meet memory that the last one still holds."""
    memory, smi = tmp_path / "memory", tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(NVIDIA_SMI.format(memory=memory))
    smi.chmod(0o755)
    memory.write_text("12\n4\n")
    wrapped = wrap(PATH=f"{smi.parent}:{os.environ['PATH']}", NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b",
                   PACELINE_GPU_SECONDS="60")  # fmt: skip
    wrapped.until((wrapped.ctl / "driver").exists)
    assert (wrapped.ctl / "driver").read_text() == "550.127.08\n"
    assert (wrapped.ctl / "gpus").read_text() == "GPU-a,GPU-b\n"
    wrapped.start("sleep", "60")
    memory.write_text("4\n70000\n")
    wrapped.tell("stop")
    then = time.monotonic() + 2
    wrapped.until(lambda: time.monotonic() > then)
    assert not (wrapped.ctl / "exit").exists()
    memory.write_text("4\n12\n")
    assert wrapped.exit() == "143 stopped"


@pytest.mark.parametrize("handed", ["", "all", "void"])
def test_gpus_that_nobody_names_are_asked_for(wrap: Wrap, tmp_path: Path, handed: str) -> None:
    """A device plugin may hand them out otherwise than by the variable (CDI)."""
    memory, smi = tmp_path / "memory", tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(NVIDIA_SMI.format(memory=memory))
    smi.chmod(0o755)
    memory.write_text("12\n")
    wrapped = wrap(PATH=f"{smi.parent}:{os.environ['PATH']}", NVIDIA_VISIBLE_DEVICES=handed)
    wrapped.until((wrapped.ctl / "gpus").exists)
    assert (wrapped.ctl / "gpus").read_text() == "GPU-a,GPU-b\n"


def test_where_nobody_knows_the_gpus_there_are_none(wrap: Wrap) -> None:
    wrapped = wrap(NVIDIA_VISIBLE_DEVICES="void")
    wrapped.until((wrapped.ctl / "gpus").exists)
    assert (wrapped.ctl / "gpus").read_text() == "\n"


@pytest.mark.parametrize("unknown", ["[N/A]", "[Not Supported]", ""])
def test_a_driver_that_gives_no_number_is_not_waited_for(wrap: Wrap, tmp_path: Path, unknown: str) -> None:
    memory, smi = tmp_path / "memory", tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(NVIDIA_SMI.format(memory=memory))
    smi.chmod(0o755)
    memory.write_text(f"{unknown}\n")
    wrapped = wrap(PATH=f"{smi.parent}:{os.environ['PATH']}", PACELINE_GPU_SECONDS="60")
    wrapped.start("sleep", "60")
    wrapped.tell("stop")
    assert wrapped.exit() == "143 stopped"


COUNTERS = ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
COUNTED = ",".join(f"clocks_event_reasons_counters.{name}" for name in COUNTERS)
ASKED = "uuid,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu"


@pytest.mark.parametrize(
    ("unknown", "fields"),
    [
        ("no_such_field", f"{ASKED},clocks_event_reasons.active,{COUNTED}"),
        ("clocks_event_reasons_counters", f"{ASKED},clocks_event_reasons.active"),
        ("clocks_event_reasons", f"{ASKED},clocks_throttle_reasons.active"),
        ("_reasons", ASKED),
    ],
)
def test_a_look_says_how_the_gpus_are_as_far_as_the_driver_knows(
    wrap: Wrap, tmp_path: Path, unknown: str, fields: str
) -> None:
    """Of a field that it does not know nvidia-smi says so, and exits with 2."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(
        f"""#!/bin/sh
case $1 in *{unknown}*) echo 'Field "{unknown}" is not a valid field to query.'; exit 2 ;; esac
case $1 in *clocks.sm*) echo "GPU-a, 100$(cat "{tmp_path}/looks"), 1980, and more" ;; *) echo 570.1 ;; esac
"""
    )
    smi.chmod(0o755)
    (tmp_path / "looks").write_text("1")
    wrapped = wrap(PATH=f"{smi.parent}:{os.environ['PATH']}")
    wrapped.until((wrapped.ctl / "driver").exists)
    assert not (wrapped.ctl / "clocks").exists()  # nobody has looked
    for look in (1, 2):
        (tmp_path / "looks").write_text(str(look))
        (wrapped.ctl / "clocks").unlink(missing_ok=True)
        wrapped.tell("look")
        wrapped.until((wrapped.ctl / "clocks").exists)
        assert (wrapped.ctl / "clocks").read_text() == f"{fields}\nGPU-a, {1000 + look}, 1980, and more\n"
        assert not (wrapped.ctl / "look").exists()


def test_it_says_all_the_time_that_it_lives(wrap: Wrap) -> None:
    wrapped = wrap()
    pulse = wrapped.ctl / "alive"
    wrapped.until(pulse.exists)
    first = pulse.stat().st_mtime_ns
    wrapped.until(lambda: pulse.stat().st_mtime_ns > first, seconds=5)
