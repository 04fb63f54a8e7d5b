"""Long tables and pages of sections, as a reader needs them: a cell that repeats the one above it is left empty."""

from collections.abc import Iterable, Iterator


def short(lines: Iterable[str], columns: int) -> Iterator[str]:
    """Of the first columns, cells that say what the line above says are empty."""
    above: list[str] = []
    for line in lines:
        cells = split(line)
        first = ["" if cell in above[n : n + 1] else cell for n, cell in enumerate(cells[:columns])]
        yield joined(first, cells, columns)
        above = cells[:columns]


def whole(lines: Iterable[str], columns: int) -> Iterator[str]:
    """As they were before `short`."""
    above: list[str] = []
    for line in lines:
        cells = split(line)
        above = [cell or above[n] for n, cell in enumerate(cells[:columns])]
        yield joined(above, cells, columns)


def percent(fraction: float) -> str:
    """Two digits name a count of 4,000 exactly; rounded as a fraction of four digits."""
    text = f"{100 * float(f'{fraction:.4f}'):.2f}"
    return {"0.00": "0", "100.00": "100"}.get(text, text)


def split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def joined(first: list[str], cells: list[str], columns: int) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in [*first, *cells[columns:]])


def section(page: str, text: str) -> str:
    """The page with this section, which begins with its heading `## …`, in place of the one of that name, or at its
    end."""
    heading, _, _ = text.partition("\n")
    before, there, rest = f"{page.rstrip()}\n".partition(f"\n{heading}\n")
    after = rest[rest.index("\n## ") :] if "\n## " in rest else "\n"
    return f"{before.rstrip()}\n\n{text.strip()}\n{after}" if there else f"{before.rstrip()}\n\n{text.strip()}\n"
