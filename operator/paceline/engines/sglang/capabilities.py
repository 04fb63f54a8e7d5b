"""SGLang's capabilities (0.5.23; paths below `srt/`). Its parser is argparse's own."""

from paceline.core import ALGORITHMS
from paceline.engines.capabilities import TPU, Capabilities
from paceline.engines.sglang.versions import EAGLE_FAMILY

CAPABILITIES = Capabilities(
    algorithms=ALGORITHMS,
    repository="lmsysorg/sglang",
    aliases={"FROZEN_KV_MTP": "NEXTN"},  # speculative_hook.py:109
    trees=True,
    ngram_breadth=True,
    adaptive=EAGLE_FAMILY,  # adaptive_spec_params.py:56
    adaptive_steps="initial depth; the engine's default if absent",
    schedule=EAGLE_FAMILY,
    custom_args="flags that begin with --speculative- or, for UNO, --uno-",
    not_on=(TPU,),
    several_nodes=True,
    admin_key=True,
)
