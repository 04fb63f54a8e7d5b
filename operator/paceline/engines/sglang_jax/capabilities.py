"""sglang-jax's capabilities (cddbf6f; paths below `sgl_jax/srt/`). Its parser is argparse's own."""

from paceline.engines.capabilities import TPU, Capabilities

CAPABILITIES = Capabilities(
    # It accepts STANDALONE but builds no draft worker for it (managers/scheduler.py:383).
    algorithms=("EAGLE", "EAGLE3", "NEXTN", "DFLASH"),
    # With one step the server dies while compiling (speculative/base_worker.py:89), with topk above 1 at its first
    # draft (speculative/eagle_draft_worker.py:417).
    fewest_steps=2,
    resource=TPU,
    needs_topology=True,
    several_nodes=True,
)
