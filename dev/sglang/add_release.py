"""add_release.py VERSION…: what Paceline and its tests know of a release of SGLang, read in its wheel.

    .venv/bin/uv run --no-project --python .venv/bin/python --with msgspec --with orjson \\
        dev/sglang/add_release.py VERSION

Writes flags.json and moves.json of operator/paceline/engines/sglang/data, and backends.json and variables.json of
tests/unit/engines/sglang, whose tests then say which rows of `backends.py` and `variables.py` are to be moved. Ends
with 1 if a flag that was read is not one of the wheel's own parser. Without a version everything is read again.
Downloads all wheels at the first call (build/sglang-wheels); nothing of them is installed.
"""

import sys

import check_flags
import extract_backends
import extract_flags
import extract_moves
import extract_variables
from packaging.version import Version
from wheels import versions


def main(added: list[str]) -> int:
    every = sorted({*versions(), *added}, key=Version)
    extract_flags.main(every)
    extract_backends.main(every)
    extract_variables.main(every)
    extract_moves.main(every, added or every)
    wrong = {version: names for version in added or every if (names := check_flags.differs(version))}
    for version, names in wrong.items():
        print(f"{version}: not as its parser has it:", *names, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
