"""An SGLang 0.5.23 without a GPU: the same flags, endpoints, metrics and exit codes, and published speeds.

    flags → resolve      what was asked, what the server makes of it, what it refuses
    models → profile     which target and head, and how fast they decode
    layers               which hidden states the head is given, and what becomes of it
    engine               the decode loop as a function of time
    server               the engine on the real clock, with its counters
    app, generation      HTTP; `dialects` reads requests and writes answers, `info` and `metrics` speak of the server
    settings             everything that is told by the environment, faults included

It imports nothing else of Paceline: a table shared with the operator would only prove that we agree with ourselves.
What it is held to are captures of the real server (tests/contract).
"""

from paceline.emulator.main import main

__all__ = ["main"]
