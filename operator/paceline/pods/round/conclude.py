"""`python -m paceline.pods.round.conclude`: the round's last container, after those of all arms.

It waits for the client, and ends with the client's exit code and message: of a pod's sidecars nobody asks how they
ended.
"""

import os
import sys
import time
from pathlib import Path

from paceline.pods.round.control import END, control_directory

CLIENT_SECONDS = 300.0
"""Seconds after the last arm: more than the client needs to compare answers and to write the result."""
LONGEST_SENTENCE = 2048
"""Bytes; the kubelet keeps 12 KiB of a pod's messages."""


def main() -> int:
    end = control_directory() / "in" / END
    deadline = time.monotonic() + CLIENT_SECONDS
    while not end.exists():
        if time.monotonic() > deadline:
            return concluded(
                1, f"the round failed: its client did not end in {CLIENT_SECONDS:.0f} s after the last arm"
            )
        time.sleep(0.1)
    code, _, message = end.read_text().partition("\n")
    return concluded(int(code), message)


def concluded(code: int, message: str) -> int:
    path = Path(os.environ.get("PACELINE_TERMINATION_LOG", "/dev/termination-log"))
    path.write_bytes(message.encode()[:LONGEST_SENTENCE])
    print(message or "done", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
