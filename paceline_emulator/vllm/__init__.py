"""A vLLM 0.33.0 without a GPU: as much of `vllm serve` as its examples need, on the engine of the emulated SGLang.

    flags     the command line and argparse's refusals
    launch    what the arguments come to, and what vLLM refuses to start with
    server    the engine on the real clock, with its counters
    app       HTTP
    invalid   pydantic's words for a value that is refused
    log       its lines

Held to captures of the real one on a CPU (tests/contract/captures/vllm), as far as the operator reads them.

Left out: the development mode, histograms, completions, everything about several nodes and adapters. The environment is
that of the emulated SGLang (`paceline_emulator.settings`); VLLM_API_KEY is read as vLLM reads it. Its version says
`+emulated`.
"""

from paceline_emulator.vllm.main import main

__all__ = ["main"]
