"""check_flags.py FOLDER [VERSION…]: the flags that were read in the wheels beside those of each wheel's own parser.

Each wheel in FOLDER is unpacked, and its `ServerArgs.add_cli_args` run without a GPU (`resolved.py`). Prints a line for
each release, and ends with 1 if names or choices differ. Needs msgspec and orjson.
"""

import argparse
import contextlib
import importlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import resolved
from extract_flags import TO
from releases import VERSIONS

Parsed = dict[str, list[str] | None]
"""Name of a flag → its choices."""


def of_the_parser(root: str) -> Parsed:
    with contextlib.redirect_stdout(sys.stderr):
        resolved.prepare(root, "H100")
        parser = argparse.ArgumentParser(add_help=False)
        importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    every: Any = parser._actions
    return {
        name: sorted(map(str, action.choices)) if action.choices else None
        for action in every
        for name in action.option_strings
    }


def of_the_list(version: str) -> Parsed:
    """Choices that only the running program knows are None."""
    at = VERSIONS.index(version)

    def has(spans: list[list[str]]) -> bool:
        return any(VERSIONS.index(first) <= at <= VERSIONS.index((last or VERSIONS)[-1]) for first, *last in spans)

    found: Parsed = {}
    for row in json.loads(TO.read_text())["flags"]:
        some = [word for word, spans in row.get("sometimes", {}).items() if has(spans)]
        words = sorted(map(str, [*row.get("choices", ()), *some])) or None
        if has(row["in"]):
            found |= {name: words for name in row["names"] if name.startswith("-")}
    return found


def differs(version: str, wheel: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as root:
        zipfile.ZipFile(wheel).extractall(root)
        said = subprocess.run([sys.executable, __file__, "--one", root], stdout=subprocess.PIPE, check=True)
    theirs, ours = json.loads(said.stdout), of_the_list(version)
    names = theirs.keys() ^ ours.keys()
    return sorted(names | {one for one in theirs.keys() & ours.keys() if ours[one] and ours[one] != theirs[one]})


def main(folder: Path, versions: list[str]) -> int:
    found = {version: differs(version, next(folder.glob(f"sglang-{version}-*.whl"))) for version in versions}
    for version, names in found.items():
        print(version, *(names or ["the same"]))
    return int(any(found.values()))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        json.dump(of_the_parser(sys.argv[2]), sys.stdout)
    else:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:] or list(VERSIONS)))
