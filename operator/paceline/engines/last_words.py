"""Why a server ended: the line of its log that tells a person, which is seldom the last one.

What the last lines are, of captures of the real ones (tests/contract/captures):

* vLLM 0.33.0 ends a refusal with pydantic's link, and after its engine died it shuts down politely, at level INFO;
* sglang-jax 0.1.0rc0 and SGLang 0.5.23 end with what the parent says of a child's signal;
* an exception that points elsewhere ("see root cause above") comes after the one that it points to.

So an exception of its own comes first, then an end that is told, then a line that sounds like a failure. Kubernetes
hands over the last 2048 bytes or 80 lines of a log, a round all of it: neither begins where the trouble does.
"""

import re
from collections.abc import Callable, Sequence

LONGEST = 300
STAMP = re.compile(
    r"\x1b\[[0-9;]*m"
    r"|^\[[^\]]*\d{2}:\d{2}:\d{2}[^\]]*\] ?"  # [2026-11-22 03:23:53 TP0]
    r"|^\(\w[^)]* pid=\d+\) (?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]+\] ?)?"  # (APIServer pid=7) ERROR …
)
RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt)(?:: .*)?|\S.*: error: .*")
"""A whole line: how Python writes an exception, and how argparse writes its own."""
INVALID = re.compile(r"\d+ validation errors? for (?P<what>\S+)")
VALUE = re.compile(r" \[type=\w+, input_value=.*")
"""What pydantic adds to a reason: the value, which is the whole configuration."""
ENDED = re.compile(r"(?:died|exited) unexpectedly|scheduler is dead|watchdog timeout|\bKilled\b", re.IGNORECASE)
TELLING = re.compile(r"error|exception|fail|fatal|killed|unrecognized|out of memory", re.IGNORECASE)
POINTING = re.compile(
    r"root cause above|\(above\) for the root cause|received sigquit|SIGQUIT received|^Dumping requests before crash"
    r"|^For further information visit|^EOFError$",
    re.IGNORECASE,
)
"""Says that something else was the reason."""


def last_words(log: str, longest: int = LONGEST) -> str:
    """The telling line without its stamp, at most so many characters; "" of an empty log."""
    lines = [line for line in (STAMP.sub("", line).rstrip() for line in log.splitlines()) if line.strip()]
    first_hand = [index for index, line in enumerate(lines) if not POINTING.search(line.strip())]
    for tells in TIERS:
        for index in reversed(first_hand):
            if tells(lines[index]):
                return _said(lines, index)[:longest]
    return _said(lines, len(lines) - 1)[:longest] if lines else ""


TIERS: tuple[Callable[[str], object], ...] = (RAISED.fullmatch, ENDED.search, TELLING.search, bool)


def _said(lines: Sequence[str], index: int) -> str:
    """The line; of pydantic's errors what was wrong with what."""
    invalid = INVALID.search(lines[index])
    if invalid is None:
        return VALUE.sub("", lines[index].strip())
    wrong = []
    for line in lines[index + 1 :]:
        if POINTING.search(line.strip()):
            break
        wrong.append(VALUE.sub("", line.strip()))
    return ": ".join((invalid["what"], *wrong))
