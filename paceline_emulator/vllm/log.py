"""Log lines as vLLM writes them: of a process of its own with level and place, of uvicorn without. All go to stderr."""

import os
import sys
import time


def log(process: str, level: str, place: str, message: str) -> None:
    """`(EngineCore pid=7) INFO 11-22 02:43:44 [core.py:139] …`"""
    write(f"({process} pid={os.getpid()}) {level} {time.strftime('%m-%d %H:%M:%S')} [{place}] {message}")


def write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
