"""The lock on a shared volume. Times are scaled: a beat of 40 ms, stale after 300 ms."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

from paceline.pods.fetch.lock import holding

BEAT, STALE = 0.04, 0.3


def test_one_at_a_time(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(3):
            with holding(tmp_path / "a.lock", beat=BEAT, stale=STALE):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.01)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert list(tmp_path.iterdir()) == []


def test_a_living_holder_is_waited_for_however_long_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    got = threading.Event()

    def wait() -> None:
        with holding(path, beat=BEAT, stale=STALE):
            got.set()

    with holding(path, beat=BEAT, stale=STALE):
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not got.wait(3 * STALE)
    assert got.wait(2)
    waiter.join()


def test_a_crashed_holder_does_not_block_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.write_text("node-of-a-dead-pod 0123 17\n")
    start = time.monotonic()
    with holding(path, beat=BEAT, stale=STALE):
        assert time.monotonic() - start >= STALE
    assert list(tmp_path.iterdir()) == []


def test_who_was_taken_over_leaves_the_new_holders_lock_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with ExitStack() as first:
        first.enter_context(holding(path, beat=60, stale=STALE))  # paused: does not beat
        with holding(path, beat=BEAT, stale=STALE):
            first.close()
            assert path.exists()
    assert not path.exists()
