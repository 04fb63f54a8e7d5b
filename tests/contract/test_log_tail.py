"""What a person reads of a server that ended: the right line of logs that real ones left (captures/README.md)."""

import json
from pathlib import Path

import pytest

from paceline.engines.log_tail import failure_line

CAPTURES = Path(__file__).parent / "captures"
KEPT_BYTES, KEPT_LINES = 2048, 80
"""What Kubernetes hands over of a log (FallbackToLogsOnError)."""

OF_LOGS = {
    "sglang_jax/refused_fp8.log": "ValueError: Unsupported kv_cache_dtype: fp8_e4m3.",
    "sglang_jax/refused_shape.log": (
        "ValueError: Speculative overlap scheduler only supports DFLASH, EAGLE3+FA, or NEXTN with "
        "--speculative-eagle-topk=1 and --speculative-num-draft-tokens == --speculative-num-steps + 1. Please pass "
        "--disable-overlap-schedule for other speculative configs."
    ),
    "sglang_jax/eagle3_page1_dies.log": "ValueError: token_to_kv_pool_allocator memory leak detected!",
    "vllm/engine_killed.log": (
        "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup"
    ),
}  # fmt: skip
OF_REFUSALS = {
    '{"method": "eagle3", "num_speculative_tokens": 3}': (
        "SpeculativeConfig: Value error, num_speculative_tokens was provided but without speculative model."
    ),
    "{method": (
        "main.py serve: error: argument --speculative-config/-sc: Value {method cannot be converted to "
        "<function loads at 0x7f24743a5260>."
    ),
    "0.8": "main.py: error: unrecognized arguments: --mem-fraction-static 0.8",
    "many": "main.py serve: error: argument --max-num-seqs: invalid int value: 'many'",
}
IN_SHORT = [
    ("[2026-11-22 03:23:53 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
     '  File "scheduler.py", line 1, in run\n    raise torch.OutOfMemoryError\n'
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n\n"
     "[2026-11-22 03:23:53] SIGQUIT received. signum=3, frame=None. It usually means one child failed.",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
    ("(EngineCore pid=7) ERROR 11-22 03:12:14 [core.py:1139] ValueError: To serve at least one request, 3.5 GiB\n"
     "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
     "ValueError: To serve at least one request, 3.5 GiB"),
    ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
     "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"),
    ("1 validation error for SpeculativeConfig\nnum_steps\n  Unexpected keyword argument "
     "[type=unexpected_keyword_argument, input_value=4, input_type=int]\n"
     "    For further information visit https://errors.pydantic.dev/2.14/v/unexpected_keyword_argument",
     "SpeculativeConfig: num_steps: Unexpected keyword argument"),
    ("  Value error, no model. [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]\n"
     "    For further information visit https://errors.pydantic.dev/2.14/v/value_error",
     "Value error, no model."),
    ("ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use\n"
     "INFO:     Application shutdown complete.",
     "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use"),
    ("jaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory\n--------------------\n"
     "For simplicity, JAX has removed its internal frames from the traceback of the following exception.",
     "jaxlib._jax.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory"),
    ('Traceback (most recent call last):\n  File "x.py", line 1\n    assert False\nAssertionError', "AssertionError"),
    ("loading\nready", "ready"),
    ("", ""),
]  # fmt: skip
"""Of SGLang's source and reports, and what a piece of a log may begin with."""


def kept(log: str) -> str:
    """What Kubernetes keeps of it."""
    return "\n".join(log.encode()[-KEPT_BYTES:].decode(errors="replace").splitlines()[-KEPT_LINES:])


@pytest.mark.parametrize(("name", "said"), OF_LOGS.items())
def test_of_a_log(name: str, said: str) -> None:
    log = (CAPTURES / name).read_text()
    assert failure_line(log) == said[:300]
    assert failure_line(kept(log)) == said[:300]
    assert said not in log.strip().splitlines()[-1] or "refused_shape" in name


@pytest.mark.parametrize(("value", "said"), OF_REFUSALS.items())
def test_of_a_refusal_of_vllm(value: str, said: str) -> None:
    refusals = map(json.loads, (CAPTURES / "vllm" / "refusals.jsonl").read_text().splitlines())
    tail = next(one["tail"] for one in refusals if one["case"][1] == value)
    assert failure_line(tail) == failure_line(kept(tail)) == said


@pytest.mark.parametrize(("log", "said"), IN_SHORT)
def test_in_short(log: str, said: str) -> None:
    assert failure_line(log) == said
