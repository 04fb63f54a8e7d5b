"""A thin sglang-jax without a TPU: flags, refusals, pages and log lines around the emulated SGLang's engine.

    flags → resolve   what was asked, and what the real one refuses before and after it has loaded
    server            the engine; every decode step is a line of the log
    ends              how it ends whose scheduler failed
    app               the pages that differ from SGLang's

Sources: the wheel of 0.1.0rc0 on PyPI, paths below `sgl_jax/srt/`, and captures of it on a CPU
(tests/contract/captures/sglang_jax) for the log's lines and its ends. Speeds are those of the emulated SGLang's
profiles, so invented here.
"""

from paceline_emulator.sglang_jax.main import main

__all__ = ["main"]
