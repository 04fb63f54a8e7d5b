"""Output of a measurement, while it runs and at its end."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from paceline.cli.options import EXIT
from paceline.core.manifest import Manifest
from paceline.core.text import printable
from paceline.measure import record
from paceline.measure.applying import applying
from paceline.measure.rounds import LocalRun

DRAW_SECONDS = 1.0
"""Seconds between two redraws: drawing must not take CPU from the measurement."""
_PAGE = "the page needs jinja2 and matplotlib: pip install jinja2 matplotlib"


def tell(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


def watch(rounds: LocalRun) -> None:
    """Redraws in place on a terminal; elsewhere prints a line per event."""
    from paceline.cli.live.screen import draws_in_place

    if not draws_in_place():
        for line in _lines(rounds):
            print(f"{datetime.now(UTC):%H:%M:%S} {printable(line)}", flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    from paceline.cli.live.measuring import drawn, intervals_so_far, known_so_far

    shown, measured = -math.inf, -1
    with Live(console=Console(highlight=False), auto_refresh=False) as screen:
        for moment in rounds.until_the_end():
            if time.monotonic() - shown < DRAW_SECONDS:
                continue
            shown, rounds_so_far = time.monotonic(), len(moment.run.get("rounds", ()))
            if rounds_so_far != measured:
                measured, candidates = rounds_so_far, intervals_so_far(moment.run)
            lines = known_so_far(rounds.spec, moment.run, candidates, going_on=moment.plan is not None)
            screen.update(drawn(moment, lines, datetime.now(UTC), emulated=rounds.machine.emulated), refresh=True)


def _lines(rounds: LocalRun) -> Iterator[str]:
    from paceline.cli.live.measuring import intervals_so_far, known_so_far, progress_view
    from paceline.cli.live.progress import spent, time_left

    said = measured = 0
    message = ""
    for moment in rounds.until_the_end():
        at = progress_view(moment, datetime.now(UTC))
        if at and at.rounds != measured:
            yield from known_so_far(rounds.spec, moment.run, intervals_so_far(moment.run))
            yield f"{time_left(at)}; {spent(at)}" if at.search else time_left(at)
            measured = at.rounds
        if at and at.message != message:
            yield at.message
            said, message = 0, at.message
        yield from moment.said[said:]
        said = max(said, len(moment.said))


def end(runs: Sequence[Manifest], file: Path, page: Path) -> int:
    """The exit code for the verdict of the last of `runs`, stored in `file`; an earlier run is the search that led to
    it."""
    from paceline.cli.live.measuring import verdict_lines
    from paceline.cli.live.screen import print_styled
    from paceline.report import FORMATS, build_report
    from paceline.report.spent import time_lines

    *searches, last = runs
    for one in runs:
        print()
        print_styled(verdict_lines(one))
    for line in time_lines(last):
        print(printable(line))
    print()
    for _ in searches:
        print(f"{record.search_of(file)}  the search before it")
    print(f"{file}  the run, for paceline report")
    for line in applying(str(file), last, datetime.now(UTC), searched=bool(searches)):
        print(printable(line))
    print(f"{record.folder_of(file).resolve()}  the logs of its rounds")
    try:
        page.write_text(FORMATS["html"](build_report([last, *searches])), encoding="utf-8")
        print(page)
    except ImportError as error:
        tell(f"{page} is not written: {_PAGE} ({error})")
    status = last.get("status") or {}
    outcome = (status.get("verdict") or {}).get("outcome", "")
    failed = any(one["type"] == "Failed" and one["status"] == "True" for one in status.get("conditions", ()))
    # 0 also for a Sweep, which decides nothing, and for a search that found something.
    return EXIT.get(outcome, EXIT["Error"] if failed else 0)
