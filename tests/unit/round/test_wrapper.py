"""PID 1 of an arm's container in a round, run by dash as it is, with real processes."""

import json
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest
from tests.unit.round.pod import ALONE
from tests.unit.round.wrapped import WRAPPER, Wrap, alive


def test_a_server_runs_until_it_is_stopped_and_end_is_the_end(wrap: Wrap, tmp_path: Path) -> None:
    wrapped = wrap()
    server = wrapped.start(sys.executable, "-u", "-c", "print('serves'); import time; time.sleep(60)")
    wrapped.until(lambda: "serves" in wrapped.log())
    wrapped.stop()
    assert wrapped.exit() == "143 stopped"
    assert not alive(server)
    wrapped.tell("arm/end")
    assert wrapped.ended() == 0
    assert (tmp_path / "stdout").read_text() == "serves\n"


@pytest.mark.parametrize("over", ["done", "arm/end"])
def test_a_server_that_runs_is_ended_where_the_round_is_over(wrap: Wrap, over: str) -> None:
    wrapped = wrap()
    server = wrapped.start("sleep", "60")
    wrapped.tell(over)
    assert wrapped.ended() == 0
    assert not alive(server)


def test_no_arm_begins_once_the_round_is_over(wrap: Wrap) -> None:
    wrapped = wrap()
    wrapped.tell("done")
    assert wrapped.ended(beating=False) == 0


NEEDED = ("cat", "mkfifo", "mv", "rm", "sed", "sleep", "sort", "tail", "tee", "timeout", "tr")


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
    wrapped.tell("arm/end")
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


def test_nothing_of_an_arm_survives_its_container(wrap: Wrap, tmp_path: Path) -> None:
    """A daemon has left session, group and parents; the kernel ends it with PID 1."""
    sign = tmp_path / "sign"
    wrapped = wrap(alone=ALONE)
    wrapped.start(sys.executable, "-c", DAEMON, str(sign))
    wrapped.seen = 0  # a number of another namespace
    wrapped.until(sign.exists)
    wrapped.tell("arm/end")
    assert wrapped.ended() == 0
    last = sign.read_text()
    time.sleep(0.2)
    assert sign.read_text() == last
    assert not [path for path in wrapped.out.iterdir() if not path.name.startswith(".")], "the volume is left empty"


def test_where_it_is_not_alone_it_ends_nobody_else(wrap: Wrap, tmp_path: Path) -> None:
    """In a namespace of this test's own, and not as its first process."""
    sign = tmp_path / "sign"
    neighbour = f'{shlex.join((sys.executable, "-c", DAEMON, str(sign)))} & exec 3>&1; "$@"; exit $?'
    wrapped = wrap(alone=(*ALONE, "dash", "-c", neighbour, "first"))
    wrapped.until(sign.exists)
    wrapped.start("sleep", "60")
    wrapped.seen = 0
    wrapped.stop()
    assert wrapped.exit() == "143 stopped"
    last = sign.read_text()
    wrapped.until(lambda: sign.read_text() != last, seconds=2)


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


def test_it_says_all_the_time_that_it_lives(wrap: Wrap) -> None:
    wrapped = wrap()
    pulse = wrapped.out / "alive"
    wrapped.until(pulse.exists)
    first = pulse.stat().st_mtime_ns
    wrapped.until(lambda: pulse.stat().st_mtime_ns > first, seconds=5)
