"""The parts of a server's start, by its own log. Only the patterns differ between engines.

Durations that an engine prints are preferred. Times of day are used where it prints none, and for the time before the
first weights: only differences within one log count, so neither the time zone nor the client's clock matters.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SECONDS_TOLD = r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?)"
LONGEST = 4 << 20
"""Bytes of a log that are searched. A start of SGLang or vLLM logs less than 100 kB on one GPU."""
_DAY = 24 * 3600
_RESOLUTION = 1.0
"""Seconds by which a difference of two times of day may be wrong: logs have whole seconds."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLines:
    """What an engine's log says of a start. `stamp` begins a line: the groups `time` (HH:MM:SS) and `rank`, the process
    that writes; a part is summed over a process's lines, and the slowest process counts."""

    stamp: re.Pattern[str]
    loading: re.Pattern[str]
    """The first weights are about to be loaded; everything before it is imports and the engine's own set-up."""
    printed: Mapping[str, Sequence[re.Pattern[str]]] = field(default_factory=dict)
    """Part → lines with its `seconds`, in forms of which the first that occurs counts. Two forms of which the one
    contains the other would count twice."""
    between: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = field(default_factory=dict)
    """Part → its first and its last line, if nothing was printed. Less than a second is not seen."""
    fewer_graphs: str = ""
    """The arguments with which fewer shapes are captured or compiled."""


def start_parts(lines: StartLines, log: str, start_seconds: float) -> dict[str, float]:
    """`imports`, `weights` and `graphs` in seconds, as far as the log of a server shows them that was ready after
    `start_seconds`; the last line is the moment at which it was. Empty if they cannot be true: anyone may write a
    server's log."""
    stamped = list(_stamped(lines.stamp, log))
    parts = {part: seconds for part, forms in lines.printed.items() if (seconds := _printed(forms, stamped))}
    for part, (first, last) in lines.between.items():
        if part not in parts and (seconds := _between(first, last, stamped)):
            parts[part] = seconds
    rest = start_seconds - math.fsum(parts.values())
    began = next((line.at for line in stamped if lines.loading.search(line.text)), None)
    if began is not None:
        imports = start_seconds - (stamped[-1].at - began) % _DAY
        if rest < imports <= rest + _RESOLUTION:
            imports = rest
        if imports > 0:
            parts["imports"], rest = imports, rest - imports
    return parts if rest >= 0 else {}


@dataclass(frozen=True, slots=True)
class _Line:
    at: int
    """Second of the day."""
    rank: str
    text: str


def _stamped(stamp: re.Pattern[str], log: str) -> Iterator[_Line]:
    """Lines with a time. A bar of progress ends with a carriage return, and may stand before one on its line."""
    for line in _COLOUR.sub("", log).splitlines():
        if (found := stamp.search(line)) and (at := _second_of_day(found["time"])) is not None:
            yield _Line(at, found["rank"] or "", line[found.end() :])


def _second_of_day(time: str) -> int | None:
    hours, minutes, seconds = map(int, time.split(":"))
    return 3600 * hours + 60 * minutes + seconds if hours < 24 and minutes < 60 and seconds < 61 else None


def _printed(forms: Sequence[re.Pattern[str]], stamped: Sequence[_Line]) -> float:
    for form in forms:
        sums: dict[str, float] = defaultdict(float)
        for line in stamped:
            if found := form.search(line.text):
                sums[line.rank] += float(found["seconds"])
        if sums:
            return max(sums.values())
    return 0.0


def _between(first: re.Pattern[str], last: re.Pattern[str], stamped: Sequence[_Line]) -> float:
    sums, open_since = dict[str, float](), dict[str, int]()
    for line in stamped:
        if first.search(line.text):
            open_since.setdefault(line.rank, line.at)
        elif line.rank in open_since and last.search(line.text):
            took = (line.at - open_since.pop(line.rank)) % _DAY
            sums[line.rank] = sums.get(line.rank, 0.0) + took
    return max(sums.values(), default=0.0)
