"""What SGLang can do (0.5.23; paths below `srt/`). The parser is argparse's own."""

from paceline.core import ALGORITHMS
from paceline.engines.capabilities import TPU, Capabilities

CAPABILITIES = Capabilities(
    algorithms=ALGORITHMS,
    aliases={"FROZEN_KV_MTP": "NEXTN"},  # speculative_hook.py:109
    trees=True,
    ngram_breadth=True,
    adaptive=("EAGLE", "EAGLE3", "NEXTN", "MTP"),  # adaptive_spec_params.py:56
    adaptive_steps="initial depth; the engine's default if absent",
    instead_of_schedule="reads its own from a file, which a candidate with adaptive names in args: "
    "--speculative-adaptive-config",
    custom_args="flags that begin with --speculative- or, for UNO, --uno-",
    not_on=(TPU,),
    several_nodes=True,
    admin_key=True,
)
