"""PID 1 of a round's server container, run by dash as it is, with real processes."""

import json
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest
from tests.unit.round.pod import ALONE
from tests.unit.round.wrapped import WRAPPER, Wrap, alive


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


def test_it_says_all_the_time_that_it_lives(wrap: Wrap) -> None:
    wrapped = wrap()
    pulse = wrapped.ctl / "out" / "alive"
    wrapped.until(pulse.exists)
    first = pulse.stat().st_mtime_ns
    wrapped.until(lambda: pulse.stat().st_mtime_ns > first, seconds=5)
