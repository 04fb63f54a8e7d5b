"""Prints in colour at the terminal's width, or as plain lines of any length elsewhere."""

import io
import sys

from rich.console import Console, RenderableType

UNBOUNDED = 10_000
"""Width when the output is not a terminal: lines do not wrap, for grep."""


def draws_in_place() -> bool:
    """Whether rich can redraw its output on stdout, a terminal."""
    return sys.stdout.isatty() and not Console().is_dumb_terminal


def print_styled(what: RenderableType) -> None:
    """rich omits colours itself for NO_COLOR and dumb terminals."""
    if sys.stdout.isatty():
        Console(highlight=False).print(what)
    else:
        print(plain_text(what))


def plain_text(what: RenderableType, width: int = UNBOUNDED) -> str:
    """The text without colours and without trailing spaces."""
    written = io.StringIO()
    Console(file=written, width=width, color_system=None, highlight=False, legacy_windows=False).print(what)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
