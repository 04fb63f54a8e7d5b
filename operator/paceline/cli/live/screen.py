"""Where output goes: drawn in colours and as wide as the terminal, or as plain lines of any length elsewhere."""

import io
import sys

from rich.console import Console, RenderableType

UNBOUNDED = 10_000
"""Columns where the output is not a terminal: a line stays a line, for grep."""


def draws_in_place() -> bool:
    """Whether stdout is a terminal on which rich can draw over what it has drawn."""
    return sys.stdout.isatty() and not Console().is_dumb_terminal


def print_styled(what: RenderableType) -> None:
    """rich leaves colours out for NO_COLOR and a dumb terminal by itself."""
    if sys.stdout.isatty():
        Console(highlight=False).print(what)
    else:
        print(plain_text(what))


def plain_text(what: RenderableType, width: int = UNBOUNDED) -> str:
    """Without colours, and without spaces at the end of lines."""
    written = io.StringIO()
    Console(file=written, width=width, color_system=None, highlight=False, legacy_windows=False).print(what)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
