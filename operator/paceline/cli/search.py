"""`paceline search replay`: the search for the best tree, on a table of measurements (docs/searching.md)."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

NOTES = """\
FILE is {"baseline": {WORKLOAD: tokens/s}, "trees": [{"numSteps", "topK", "numDraftTokens", "points": {WORKLOAD:
{"throughput", "acceptLength"}}}]}: a grid that was measured, or made up. A throughput of null is a server that failed
there; an acceptLength of null is not known. Each seed is a search of its own, in which every measured point is the
table's throughput times a log-normal factor, and gives a line of JSON: the winner, the points and server starts that it
took (those of the baseline included), the points of the grid once over, and the regret: 1 - the winner's mean speed-up
over the best in the table. What was left out of the table is told on standard error.
Exit: 0, or 1 if FILE cannot be searched.
"""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "search",
    )
    replay = parser.add_subparsers(dest="what", required=True, metavar="replay").add_parser(
        "replay",
        help="search a table of measurements",
        description="Search a table of measurements, as the operator would search a pool.",
        epilog=NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("--table", required=True, metavar="FILE", type=Path, help="the grid, as JSON")
    replay.add_argument("--noise", required=True, metavar="CV", type=_cv, help="of a point, such as 0.02 for 2 %%")
    replay.add_argument("--seeds", required=True, metavar="A:B", type=_seeds, help="from A up to, but without, B")
    replay.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Its matrices are small: threads cost more than they give.
    from paceline.search import replay

    try:
        grid = replay.grid(_read(args.table))
    except OSError as error:
        print(f"{args.table}: {error.strerror}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{args.table}: {error}", file=sys.stderr)
        return 1
    for note in grid.notes:
        print(f"{args.table}: {note}", file=sys.stderr)
    try:
        for seed in args.seeds:
            found = replay.replay(grid, args.noise, seed)
            print(json.dumps(replay.line(grid, seed, found), allow_nan=False), flush=True)
    except BrokenPipeError:  # Whoever reads has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _read(file: Path) -> Any:
    """A field that is there twice would win in silence."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
            raise ValueError(f"{twice}: there twice in one object; keep one")
        return dict(pairs)

    try:
        return json.loads(file.read_text(encoding="utf-8-sig"), object_pairs_hook=once)
    except RecursionError as error:
        raise ValueError("nested deeper than a table is: baseline and trees, three levels each") from error


def _cv(text: str) -> float:
    try:
        cv = float(text)
    except ValueError:
        cv = -1.0
    if not 0 <= cv < 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to below 1 is expected, such as 0.02 for 2 %; got {text}")
    return cv


def _seeds(text: str) -> range:
    first, colon, last = text.partition(":")
    if not (colon and first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise argparse.ArgumentTypeError(f"A:B with A below B is expected, such as 0:200; got {text}")
    return range(int(first), int(last))
