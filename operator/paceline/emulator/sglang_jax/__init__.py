"""A thin sglang-jax without a TPU: flags, refusals, pages and log lines around the emulated SGLang's engine.

    flags → resolve   what was asked, and what the real one refuses before and after it has loaded
    server            the engine; every decode step is a line of the log
    app               the pages that differ from SGLang's

Sources: the wheel of 0.1.0rc0 on PyPI, paths below `sgl_jax/srt/`. No capture of a real server stands behind it: none
was to be had. Speeds are those of the emulated SGLang's profiles, so invented here.
"""

from paceline.emulator.sglang_jax.main import main

__all__ = ["main"]
