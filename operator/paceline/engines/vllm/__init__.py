"""vLLM.

`argv` is how an arm becomes a process, `flags` the options there are, `rules` what cannot be started and why, `probe`
what a round reads of it. Sources: vLLM 0.33.0 (its wheel on PyPI); paths are below `vllm/`. What differs from SGLang:
speculation is one JSON argument, a tree is a chain, and `/health` is an instant flag.
"""

from collections.abc import Mapping

from paceline.core import Server
from paceline.engines import bounds as limits
from paceline.engines.adapter import Adapter, Bound
from paceline.engines.vllm import flags
from paceline.engines.vllm.argv import JIT_CACHE, PORT, argv, env, expected
from paceline.engines.vllm.capabilities import CAPABILITIES
from paceline.engines.vllm.probe import probe
from paceline.engines.vllm.rules import COMPARED, MOVED, proposed, refusals
from paceline.engines.vllm.targets import hand_out_nothing, loses

BOUNDS = {"--max-num-seqs": "requests", "--max-model-len": "context"}
AUTO = ("--max-model-len=-1",)
"""config/model.py:2642."""


def bounds(server: Server) -> Mapping[str, Bound]:
    given = ((one.index, one.name, one.value) for one in flags.given(server.engine.args))
    return limits.found(given, BOUNDS, auto=AUTO)


ADAPTER = Adapter(
    capabilities=CAPABILITIES,
    port=PORT,
    argv=argv,
    env=env,
    expected=expected,
    draft_tokens=lambda arm: 1 + proposed(arm),
    compared=COMPARED,
    moved=lambda _: MOVED,
    refusals=refusals,
    bounds=bounds,
    eagle3_targets=lambda _: None,  # any that vLLM serves by way of Transformers has it: see hand_out_nothing
    ready_path=lambda _: "/health",  # the port is open only once the engine is up
    health_path="/health",
    health_timeout_seconds=5,
    probe=probe,
    jit_cache=JIT_CACHE,
    hand_out_nothing=hand_out_nothing,
    loses=loses,
)
