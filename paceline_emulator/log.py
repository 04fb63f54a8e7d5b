"""Log lines as the real server writes them, to stderr."""

import sys
import time


def say(message: str) -> None:
    """One line, with the time in front."""
    sys.stderr.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {message}\n")
    sys.stderr.flush()
