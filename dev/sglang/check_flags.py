"""The flags that were read in a wheel beside those of the wheel's own parser, for `add_release.py`.

The wheel is unpacked, and its `ServerArgs.add_cli_args` run without a GPU (`resolved.py`).
"""

import argparse
import contextlib
import importlib
import json
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

import resolved
from extract_flags import TO
from wheels import versions, wheel

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
    every = versions()
    at = every.index(version)

    def has(spans: list[list[str]]) -> bool:
        return any(every.index(first) <= at <= every.index((last or every)[-1]) for first, *last in spans)

    found: Parsed = {}
    for row in json.loads(TO.read_text())["flags"]:
        some = [word for word, spans in row.get("sometimes", {}).items() if has(spans)]
        words = sorted(map(str, [*row.get("choices", ()), *some])) or None
        if has(row["in"]):
            found |= {name: words for name in row["names"] if name.startswith("-")}
    return found


def differs(version: str) -> list[str]:
    """Names that one of them lacks, or whose choices differ."""
    with tempfile.TemporaryDirectory() as root:
        zipfile.ZipFile(wheel(version)).extractall(root)
        said = subprocess.run([sys.executable, __file__, root], stdout=subprocess.PIPE, check=True)
    theirs, ours = json.loads(said.stdout), of_the_list(version)
    names = theirs.keys() ^ ours.keys()
    return sorted(names | {one for one in theirs.keys() & ours.keys() if ours[one] and ours[one] != theirs[one]})


if __name__ == "__main__":
    json.dump(of_the_parser(sys.argv[1]), sys.stdout)
