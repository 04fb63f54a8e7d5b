"""What vLLM's log says of a start, by a log of 0.33.0 on a CPU (tests/unit/engines/starts), which captures and compiles
nothing. The lines of a GPU are those of published logs and of its source (`v1/worker/gpu/model_runner.py`,
`compilation/monitor.py`). Releases that print `torch.compile takes` repeat the sum so far for a draft: not read."""

import re

from paceline.engines.starts import SECONDS_TOLD, StartLines

START_LINES = StartLines(
    # (Worker_TP0 pid=2802) INFO 11-22 02:49:56 [default_loader.py:506] …
    stamp=re.compile(r"(?:\((?P<rank>[^)]{1,80})\) )?[A-Z]+ \d\d-\d\d (?P<time>\d\d:\d\d:\d\d) \[[^\]]{1,80}\] "),
    loading=re.compile(r"^Starting to load model "),
    printed={
        "weights": (
            # Target and draft together, with the making of the modules; then, on a CPU, each one's files alone.
            re.compile(rf"^Model loading took .{{1,60}} and {SECONDS_TOLD} seconds"),
            re.compile(rf"^Loading weights took {SECONDS_TOLD} seconds"),
        ),
        "graphs": (re.compile(rf"^(?:torch\.compile took|Graph capturing finished in) {SECONDS_TOLD} s"),),
    },
    fewer_graphs="--max-cudagraph-capture-size",
)
