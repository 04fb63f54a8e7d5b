"""Finds the line of a server's log that explains its failure, which is seldom the last one.

Typical ends of real servers' logs (tests/contract/captures):

* vLLM 0.33.0 ends a refusal with pydantic's link; after its engine died it shuts down politely, at level INFO;
* sglang-jax 0.1.0rc0 and SGLang 0.5.23 end with the parent's report of a child's signal;
* an exception that points elsewhere ("see root cause above") follows the one that it points to.

So the first choice is an exception that explains itself, then a reported end, then a line that sounds like a failure.
Kubernetes keeps the last 2048 bytes or 80 lines of a log, a round keeps all of it.
"""

import re
from collections.abc import Callable, Sequence

from paceline.core.masking import without_secrets

LONGEST_TAIL = 300
"""Characters."""
STAMP = re.compile(
    r"\x1b\[[0-9;]*m"
    r"|^\[[^\]]*\d{2}:\d{2}:\d{2}[^\]]*\] ?"  # [2026-11-22 03:23:53 TP0]
    r"|^\(\w[^)]* pid=\d+\) (?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]+\] ?)?"  # (APIServer pid=7) ERROR …
)
EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt)(?:: .*)?|\S.*: error: .*")
"""A whole line: an exception in Python's format, or argparse's error."""
INVALID = re.compile(r"(?P<count>\d+) validation errors? for (?P<subject>\S+)")
_VALUE = re.compile(r" \[type=\w+, input_value=.*")
"""pydantic appends the value to a reason; here that is the whole configuration."""
_ENDED = re.compile(r"(?:died|exited) unexpectedly|scheduler is dead|watchdog timeout|\bKilled\b", re.IGNORECASE)
FAILURE = re.compile(r"error|exception|fail|fatal|killed|unrecognized|out of memory", re.IGNORECASE)
POINTER = re.compile(
    r"root cause above|\(above\) for the root cause|received sigquit|SIGQUIT received|^Dumping requests before crash"
    r"|^For further information visit|^EOFError$",
    re.IGNORECASE,
)
"""A line that points to another line for the reason."""
TIERS: tuple[Callable[[str], object], ...] = (EXCEPTION.fullmatch, _ENDED.search, FAILURE.search, bool)


def failure_line(log: str, longest: int = LONGEST_TAIL) -> str:
    """The line without its timestamp and secrets, cut to `longest` characters; "" for an empty log."""
    lines = [line for line in (STAMP.sub("", line).rstrip() for line in log.splitlines()) if line.strip()]
    candidates = [index for index, line in enumerate(lines) if not POINTER.search(line.strip())]
    for matches in TIERS:
        for index in reversed(candidates):
            if matches(lines[index]):
                return without_secrets(_with_details(lines, index))[:longest]
    return without_secrets(_with_details(lines, len(lines) - 1))[:longest] if lines else ""


def _with_details(lines: Sequence[str], index: int) -> str:
    """The line; for pydantic's errors the subject and all errors on the lines below, each of which ends with a link."""
    invalid = INVALID.search(lines[index])
    if invalid is None:
        return _VALUE.sub("", lines[index].strip())
    errors: list[list[str]] = [[]]
    for line in lines[index + 1 :]:
        if not POINTER.search(line.strip()):
            errors[-1].append(_VALUE.sub("", line.strip()))
        elif len(errors) == int(invalid["count"]):
            break
        else:
            errors.append([])
    return ": ".join((invalid["subject"], "; ".join(": ".join(details) for details in errors)))
