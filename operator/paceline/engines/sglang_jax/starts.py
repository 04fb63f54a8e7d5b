"""What sglang-jax's log says of a start: 0.1.0rc0 on a CPU (tests/unit/engines/starts). It prints no durations; what it
compiles for each shape is its counterpart of CUDA graphs."""

import re

from paceline.engines.starts import StartLines

_LOADING = re.compile(r"^Starting parallel weight loading")
START_LINES = StartLines(
    stamp=re.compile(r"\[\d{4}-\d\d-\d\d (?P<time>\d\d:\d\d:\d\d)(?: (?P<rank>[^\]]{1,40}))?\] ?"),
    loading=_LOADING,
    between={
        "weights": (_LOADING, re.compile(r"weights loaded successfully")),
        "graphs": (
            re.compile(r"^\[Scheduler\] Begins to run .{0,40}precompile"),
            re.compile(r"^\[Scheduler\] Completes .{0,40}precompile"),
        ),
    },
    fewer_graphs="--precompile-bs-paddings and --precompile-token-paddings",
)
