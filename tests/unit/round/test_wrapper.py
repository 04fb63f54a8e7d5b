"""PID 1 of a round's server container, run by dash as it is, with real processes."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.round.pod import ALONE

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
    server: int = 0
    seals: list[str] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def tell(self, name: str, text: str = "") -> None:
        """As the client writes: under another name, then renamed."""
        hidden = self.ctl / "in" / f".{name}"
        hidden.write_text(text)
        hidden.rename(self.ctl / "in" / name)

    def until(self, ready: Callable[[], object], *, beating: bool = True, seconds: float = 15) -> None:
        """Wait, with a heartbeat."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"not in {seconds} s: {sorted(map(str, self.ctl.rglob('*')))}"
            if beating:
                self.beats += 1
                self.tell("heartbeat", str(self.beats))
            time.sleep(0.05)

    def start(self, *argv: str) -> int:
        """Start a server; its pid, or 0 if it has ended already."""
        self.until((self.ctl / "out" / "seals").exists if not self.server else lambda: True)
        self.seals = self.seals or (self.ctl / "out" / "seals").read_text().split()
        self.server += 1
        self.tell(f"start.{self.server}", f"exec {shlex.join(argv)}\n")
        self.until(lambda: self.said("pid") or self.has_exited())
        self.seen.append(int(self.said("pid") or 0))
        return self.seen[-1]

    def stop(self) -> None:
        self.tell(f"stop.{self.server}")

    def said(self, name: str) -> str:
        """By the wrapper; nothing as long as there is nothing."""
        try:
            return (self.ctl / "out" / name).read_text()
        except FileNotFoundError:
            return ""

    def has_exited(self) -> bool:
        return bool(self.said(f"exit.{self.server}"))

    def exit(self) -> str:
        """How the server ended, once it has."""
        self.until(self.has_exited)
        seal, _, how = self.said(f"exit.{self.server}").strip().partition(" ")
        assert seal == self.seals[self.server - 1]
        return how

    def log(self) -> str:
        """What the server has said so far."""
        return self.said("log")

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

    def start(*, alone: tuple[str, ...] = (), **env: str) -> Wrapped:
        ctl = tmp_path / "ctl"
        for side in ("in", "out"):
            (ctl / side).mkdir(parents=True)
        environment: Mapping[str, str] = {**os.environ, **QUICK, "PACELINE_CTL": str(ctl), **env}
        out = (tmp_path / "stdout").open("wb")
        process = subprocess.Popen([*alone, "dash", "-c", WRAPPER.read_text()], env=environment, stdout=out, stderr=out)
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
    wrapped.stop()
    assert wrapped.exit() == "143 stopped"
    assert not alive(first)
    second = wrapped.start(sys.executable, "-u", "-c", "import time; print('two of two'); time.sleep(60)")
    assert second != first
    wrapped.until(lambda: wrapped.log() == "two of two\n")
    wrapped.tell("done")
    assert wrapped.ended() == 0
    assert not alive(second)
    assert (tmp_path / "stdout").read_text() == "one of two\ntwo of two\n"


NEEDED = ("cat", "head", "mkfifo", "mv", "od", "rm", "sed", "sleep", "sort", "tail", "tee", "timeout", "tr")


@pytest.mark.parametrize("more", [(), ("setsid",)], ids=["as documented", "where there is setsid"])
def test_an_image_needs_the_programs_that_its_document_names_and_no_others(
    wrap: Wrap, tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("dash", *NEEDED, *more):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    (tmp_path / "bin" / "sh").symlink_to(shutil.which("dash") or "dash")
    wrapped = wrap(PATH=str(tmp_path / "bin"))
    wrapped.start(sys.executable, "-u", "-c", "import time; print('serves'); time.sleep(60)")
    wrapped.until(lambda: wrapped.log() == "serves\n")
    wrapped.stop()
    assert wrapped.exit() == "143 stopped"
    wrapped.tell("done")
    assert wrapped.ended() == 0
    assert (tmp_path / "stdout").read_text() == "serves\n", "and no complaint of what is not there"
    document = (WRAPPER.parents[3] / "docs" / "pods.md").read_text()
    (said,) = (part.split() for part in document.split("\n\n") if part.startswith("`sh`,"))
    assert " ".join(said) == ", ".join(f"`{name}`" for name in ("sh", *NEEDED))


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
    wrapped.stop()
    assert wrapped.exit() == "137 stopped"
    assert not any(map(alive, pids))


ORPHANED = "import os, time\npid = os.fork()\nif pid: print(pid, flush=True); os._exit(3)\ntime.sleep(60)"


def test_a_dead_leader_takes_its_children_along(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.start(sys.executable, "-c", ORPHANED)
    assert wrapped.exit() == "3"
    assert not alive(int(wrapped.log()))


DAEMON = """
import os, pathlib, sys, time
def child():
    if os.fork():
        os._exit(0)
if os.fork():
    while True:
        time.sleep(1)
os.setsid()
child()
os.setsid()
child()
while True:  # as far as any process of the arm can go away from it
    pathlib.Path(sys.argv[1]).write_text(str(time.monotonic()))
    time.sleep(0.02)
"""


def test_nothing_of_an_arm_survives_it(wrap: Wrap, tmp_path: Path) -> None:
    """A daemon has left session, group and parents; to a container's PID 1 it is one process of all there are."""
    sign = tmp_path / "sign"
    wrapped = wrap(alone=ALONE)
    wrapped.start(sys.executable, "-c", DAEMON, str(sign))
    wrapped.seen.clear()  # a number of another namespace
    wrapped.until(sign.exists)
    wrapped.stop()
    assert wrapped.exit() == "143 stopped"
    last = sign.read_text()
    wrapped.start("sh", "-c", "for each in /proc/[0-9]*; do cat $each/comm 2>/dev/null; done; echo over; sleep 60")
    wrapped.seen.clear()
    wrapped.until(lambda: wrapped.log().endswith("over\n"))
    names = set(wrapped.log().split())
    assert {"dash", "tee"} <= names <= {"dash", "sh", "tee", "cat", "sleep", "over"}, "the wrapper, this line"
    assert sign.read_text() == last


def test_where_it_is_not_alone_it_ends_nobody_else(wrap: Wrap, tmp_path: Path) -> None:
    """In a namespace of this test's own, and not as its first process."""
    sign = tmp_path / "sign"
    neighbour = f'{shlex.join((sys.executable, "-c", DAEMON, str(sign)))} & exec 3>&1; "$@"; exit $?'
    wrapped = wrap(alone=(*ALONE, "dash", "-c", neighbour, "first"))
    wrapped.until(sign.exists)
    wrapped.start("sleep", "60")
    wrapped.seen.clear()
    wrapped.stop()
    assert wrapped.exit() == "143 stopped"
    last = sign.read_text()
    wrapped.until(lambda: sign.read_text() != last, seconds=2)


FORGER = """
import os, pathlib, sys, time
out = pathlib.Path(sys.argv[1])
print(sorted(path.name for path in out.iterdir()), flush=True)
for name in ("exit.1", "exit.2", ".exit.1", "..exit.2"):
    (out / name).mkdir()
    (out / name / "file").touch()
time.sleep(60)
"""


def test_what_an_arm_puts_there_for_the_next_one_is_gone(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.start(sys.executable, "-c", FORGER, str(wrapped.ctl / "out"))
    wrapped.until(lambda: (wrapped.ctl / "out" / "..exit.2").exists())
    assert "seals" not in wrapped.log(), "a server that has read them could tell of its own end"
    wrapped.stop()
    wrapped.until(lambda: (wrapped.ctl / "out" / "exit.1").is_file())
    assert wrapped.exit() == "143 stopped"
    wrapped.start("true")
    assert wrapped.exit() == "0"


def test_a_heartbeat_that_stands_still_ends_the_server(wrap: Wrap) -> None:
    wrapped = wrap()
    pid = wrapped.start(sys.executable, "-c", STUBBORN)
    before = time.monotonic()
    assert wrapped.ended(beating=False) == 70
    assert 1 < time.monotonic() - before < 30
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
    wrapped.until((wrapped.ctl / "out" / "seals").exists)
    assert wrapped.said("driver") == "550.127.08\n"
    assert wrapped.said("gpus") == "GPU-a,GPU-b\n"
    wrapped.start("sleep", "60")
    memory.write_text("4\n70000\n")
    wrapped.stop()
    then = time.monotonic() + 2
    wrapped.until(lambda: time.monotonic() > then)
    assert not wrapped.has_exited()
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
    wrapped.until((wrapped.ctl / "out" / "seals").exists)
    assert wrapped.said("gpus") == "GPU-a,GPU-b\n"


def test_where_nobody_knows_the_gpus_there_are_none(wrap: Wrap) -> None:
    wrapped = wrap(NVIDIA_VISIBLE_DEVICES="void")
    wrapped.until((wrapped.ctl / "out" / "seals").exists)
    assert wrapped.said("gpus") == "\n"


@pytest.mark.parametrize("unknown", ["[N/A]", "[Not Supported]", ""])
def test_a_driver_that_gives_no_number_is_not_waited_for(wrap: Wrap, tmp_path: Path, unknown: str) -> None:
    memory, smi = tmp_path / "memory", tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(NVIDIA_SMI.format(memory=memory))
    smi.chmod(0o755)
    memory.write_text(f"{unknown}\n")
    wrapped = wrap(PATH=f"{smi.parent}:{os.environ['PATH']}", PACELINE_GPU_SECONDS="60")
    wrapped.start("sleep", "60")
    wrapped.stop()
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
    wrapped.until((wrapped.ctl / "out" / "seals").exists)
    assert not wrapped.said("clocks.1")  # nobody has looked
    for look in (1, 2):
        (tmp_path / "looks").write_text(str(look))
        wrapped.tell(f"look.{look}")
        wrapped.until((wrapped.ctl / "out" / f"clocks.{look}").exists)
        assert wrapped.said(f"clocks.{look}") == f"{fields}\nGPU-a, {1000 + look}, 1980, and more\n"


def test_it_says_all_the_time_that_it_lives(wrap: Wrap) -> None:
    wrapped = wrap()
    pulse = wrapped.ctl / "out" / "alive"
    wrapped.until(pulse.exists)
    first = pulse.stat().st_mtime_ns
    wrapped.until(lambda: pulse.stat().st_mtime_ns > first, seconds=5)
