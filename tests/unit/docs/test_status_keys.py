"""Planners and report read status by attribute (docs/decisions/0042): few string keys are left, and no more come."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "dev" / "count-status-keys"
MOST = 150


def test_few_keys_of_status_are_read_as_strings() -> None:
    printed = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True).stdout
    count = re.match(r"string keys read from status: (\d+) ", printed)
    assert count, printed
    assert 0 < int(count[1]) <= MOST
