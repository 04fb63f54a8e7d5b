"""What SGLang's log says of a start, by logs of 0.5.17 on a GPU and of 0.5.23 on a CPU (tests/unit/engines/starts).
Older releases end `Load weight end.` without a duration, and a capture with `Time elapsed: 7.00 s`, as their published
logs show."""

import re

from paceline.engines.starts import SECONDS_TOLD, StartLines

STAMP = re.compile(r"\[\d{4}-\d\d-\d\d (?P<time>\d\d:\d\d:\d\d)(?: (?P<rank>[^\]]{1,40}))?\] ?")
"""[2026-11-22 03:23:53 TP0]"""
START_LINES = StartLines(
    stamp=STAMP,
    loading=re.compile(r"^Load weight begin"),
    printed={  # a draft's worker loads and captures in the same process, after the target's
        "weights": (re.compile(rf"^Load weight end\. elapsed={SECONDS_TOLD} s"),),
        "graphs": (
            re.compile(rf"^Capture .{{0,60}}graph end\. (?:Time elapsed: |elapsed=){SECONDS_TOLD} s", re.IGNORECASE),
        ),
    },
    between={"weights": (re.compile(r"^Load weight begin"), re.compile(r"^Load weight end"))},
    fewer_graphs="--cuda-graph-max-bs, in newer releases --cuda-graph-max-bs-decode",
)
