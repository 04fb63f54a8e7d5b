"""All messages of Paceline that tests read, whole: tests/messages.json has them by the test that hears them.

A test asserts the rule, the field and the numbers; the words are the golden's alone. `PACELINE_GOLDEN=write pytest
TESTS`, in one process, writes those of TESTS anew: a reworded message is one command and a diff to read."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.golden import WRITE

FILE = Path(__file__).parents[1] / "messages.json"
OF_THE_MACHINE = (
    (re.compile(r"/[^\s:'\"]*/pytest-\d+(/popen-gw\d+)?/[^\s/:'\",]+"), "TMP"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
)
"""A test's own folder, and its server's address."""


class Says(Protocol):
    def __call__(self, *messages: object) -> None:
        """The next messages of this test are these, in this order."""


class Messages:
    """`kept` is the golden; `heard` is what the tests of this process heard."""

    def __init__(self) -> None:
        self.kept: dict[str, list[str]] = json.loads(FILE.read_text())
        self.heard: dict[str, list[str]] = {}

    @contextmanager
    def of(self, test: str) -> Iterator[Says]:
        heard = self.heard[test] = []
        kept = self.kept.get(test, [])
        hint = f"PACELINE_GOLDEN=write pytest {test.partition('::')[0]}, then read the diff"

        def says(*messages: object) -> None:
            heard.extend(without_machine(str(message)) for message in messages)
            assert WRITE or heard == kept[: len(heard)], hint

        yield says
        assert WRITE or heard == kept, hint

    def write(self, collected: Sequence[str], whole: bool) -> None:
        """`whole`: their files were collected whole, so that what is kept of other tests of these files goes."""
        files = {test.partition("::")[0] for test in collected}
        gone = {test for test in self.kept if whole and test.partition("::")[0] in files} | self.heard.keys()
        told = {test: said for test, said in self.kept.items() if test not in gone}
        told |= {test: said for test, said in self.heard.items() if said}
        FILE.write_text(json.dumps(told, indent=0, sort_keys=True, ensure_ascii=False) + "\n")


def without_machine(message: str) -> str:
    for pattern, name in OF_THE_MACHINE:
        message = pattern.sub(name, message)
    return message
