"""An SGLang 0.5.23 without a GPU: the same flags, endpoints, metrics and exit codes, and published speeds.

    flags → resolve      what was asked, what the server makes of it, what it refuses
    models → profile     which target and head, and how fast they decode
    layers               which hidden states the head is given, and what becomes of it
    engine               the decode loop as a function of time
    server               the engine on the real clock, with its counters
    app, generation      HTTP; `dialects` reads requests and writes answers, `info` and `metrics` speak of the server
    settings             everything that is told by the environment, faults included

`vllm` and `sglang_jax` are the same for those engines, `hub` is where models come from in demo and tests.

It imports nothing of the operator: a table shared with it would only prove that we agree with ourselves.
What it is held to are captures of the real server (tests/contract).
"""

from paceline_emulator.main import main

__all__ = ["main"]
