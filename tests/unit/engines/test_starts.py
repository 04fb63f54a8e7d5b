"""The parts of a start by logs of real servers. Folder `starts`: what they logged until they were ready, without other
lines. SGLang 0.5.17 on an H200, in the rounds 1 and 2 of dev/gpu/h200-2026-11-26; the others are the servers of
tests/contract/captures, on CPUs, from their start."""

from pathlib import Path

import pytest

from paceline.engines import ENGINES
from paceline.engines.starts import start_parts

LOGS = Path(__file__).parent / "starts"


def parts_of(engine: str, log: str, seconds: float) -> dict[str, float]:
    lines = ENGINES[engine].starts
    assert lines
    return {part: round(took, 2) for part, took in start_parts(lines, log, seconds).items()}


@pytest.mark.parametrize(
    ("engine", "log", "start", "parts"),
    [
        ("SGLang", "sglang_0.5.17_h200_baseline", 51.6, {"imports": 43.6, "weights": 2.79, "graphs": 4.01}),
        # Two models' weights (2.30 and 0.03) and three kinds of graphs (2.28, 5.16 and 1.07).
        ("SGLang", "sglang_0.5.17_h200_wide", 46.1, {"imports": 33.1, "weights": 2.33, "graphs": 8.51}),
        ("SGLang", "sglang_0.5.23_cpu", 20.0, {"imports": 18.0, "weights": 0.03}),
        ("vLLM", "vllm_0.33.0_cpu_eagle3", 140.0, {"imports": 127.0, "weights": 0.08}),
        ("SGLangJAX", "sglang_jax_0.1.0rc0_cpu", 100.0, {"imports": 38.0, "weights": 2.0, "graphs": 56.0}),
    ],
)
def test_the_parts_of_a_real_start(engine: str, log: str, start: float, parts: dict[str, float]) -> None:
    assert parts_of(engine, (LOGS / f"{log}.log").read_text(), start) == parts


OLD = """\
[2025-12-02 23:59:58] Load weight begin. avail mem=92.50 GB
[2025-12-03 00:00:04] Load weight end. type=LlamaForCausalLM, dtype=torch.float16, avail mem=77.39 GB
[2025-12-03 00:00:11] Capture cuda graph end. Time elapsed: 7.00 s. avail mem=70 GB
[2025-12-03 00:00:12] The server is fired up and ready to roll!
"""
"""As an older release writes it (the form of published logs), over midnight."""


def test_an_older_sglang_shows_its_weights_by_the_time_of_day() -> None:
    assert parts_of("SGLang", OLD, 34.0) == {"imports": 20.0, "weights": 6.0, "graphs": 7.0}


def test_of_several_ranks_the_slowest_counts() -> None:
    ranks = "".join(
        f"[2025-12-03 10:00:0{rank} TP{rank}] Load weight end. elapsed={4 + rank}.5 s, type=X\n" for rank in range(4)
    )
    assert parts_of("SGLang", ranks, 60.0) == {"weights": 7.5}


GPU = """\
(Worker_TP0 pid=9) INFO 10-06 12:00:00 [gpu_model_runner.py:5000] Starting to load model m...
(Worker_TP0 pid=9) INFO 10-06 12:00:18 [default_loader.py:506] Loading weights took 17.10 seconds
(Worker_TP1 pid=10) INFO 10-06 12:00:18 [gpu_model_runner.py:5100] Model loading took 55.22 GiB memory and 19.1 seconds
(Worker_TP0 pid=9) INFO 10-06 12:00:18 [gpu_model_runner.py:5100] Model loading took 55.22 GiB memory and 18.3 seconds
(Worker_TP0 pid=9) INFO 10-06 12:00:45 [monitor.py:53] torch.compile took 25.93 s in total
(Worker_TP0 pid=9) INFO 10-06 12:00:54 [gpu_model_runner.py:6279] Graph capturing finished in 8 secs, took 0.31 GiB
(EngineCore pid=7) INFO 10-06 12:00:55 [core.py:412] init engine (profile, create kv cache, warmup model) took 36.10 s
(APIServer pid=1) INFO 10-06 12:00:57 [launcher.py:188] Available routes are:
"""


def test_a_vllm_on_gpus_shows_compiling_and_capturing() -> None:
    """The files' 17.10 s are a part of the model's 19.1."""
    assert parts_of("vLLM", GPU, 100.0) == {"imports": 43.0, "weights": 19.1, "graphs": 33.93}


@pytest.mark.parametrize(
    "log",
    [
        "",
        "no line with a time\x00\r\n",
        "[2025-12-03 99:99:99] Load weight begin.",
        "[2025-12-03 10:00:00] Load weight end. elapsed=-3 s",
        "[2025-12-03 10:00:00] Load weight end. elapsed=nan s",
        "[2025-12-03 10:00:00] Load weight end. elapsed=1.2.3 s",
        "[2025-12-03 10:00:00] Load weight end. elapsed=99999999 s",
        "[2025-12-03 10:00:00] Load weight begin.\n[2025-12-03 14:00:00] ready",
        "[2025-12-03 10:00:05] Load weight begin.\n[2025-12-03 10:00:01] the clock was put back",
        "[2025-12-03 10:00:00] Load weight end. elapsed=40 s\n[2025-12-03 10:00:00] Capture x graph end. elapsed=40 s",
    ],
)
def test_what_cannot_be_true_is_not_told(log: str) -> None:
    assert parts_of("SGLang", log, 60.0) == {}


def test_whole_seconds_of_a_log_do_not_exceed_the_start() -> None:
    """Loading began at 00.9 by a finer clock: 1 s of the 3 is no import."""
    log = "[2025-12-03 10:00:00] Load weight begin.\n[2025-12-03 10:00:02] Load weight end. elapsed=2.8 s\n"
    assert parts_of("SGLang", log, 3.0) == {"imports": 0.2, "weights": 2.8}
