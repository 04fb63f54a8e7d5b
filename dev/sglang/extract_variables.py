"""Which wheels read the environment variables of the table in engines/sglang/variables.py, for the tests of that table
(tests/unit/engines/sglang/variables.json) and for `add_release.py`.

A variable that is only declared, or only warned of, is not read.
"""

import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from extract_flags import spans
from wheels import ROOT, wheel

from paceline.engines.sglang.variables import VARIABLES

TO = ROOT / "tests/unit/engines/sglang/variables.json"
READ = re.compile(rb'\benvs\.(SGLANG_\w+)|(?:get_\w+_env_var|environ\.get)\(\s*"(SGLANG_\w+)"')
NAMES = VARIABLES.keys()


def read_by(file: Path) -> list[str]:
    found: set[str] = set()
    with zipfile.ZipFile(file) as wheel:
        for path in wheel.namelist():
            if path.startswith("sglang/srt/") and path.endswith(".py"):
                found |= {(one or other).decode() for one, other in READ.findall(wheel.read(path))}
    return sorted(found & NAMES)


def main(versions: Iterable[str]) -> None:
    found = {version: read_by(wheel(version)) for version in versions}
    rows = (f'"{name}": {json.dumps(span)}' for name, span in sorted(spans(found).items()))
    TO.write_text("{\n" + ",\n".join(rows) + "\n}\n")
