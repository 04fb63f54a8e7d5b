"""sglang-jax, SGLang's rewrite for TPUs.

`argv` is how an arm becomes a process, `rules` all refusals and their reasons, `probe` how a round reads a server.
Unlike SGLang's, `--tp-size` counts all devices, the server refuses its own speculative defaults (4 steps, topk 5, 4
tokens), `/health` means little, and only the log has acceptance.
"""

from collections.abc import Mapping

from paceline.core import Server
from paceline.engines import bounds as limits
from paceline.engines.adapter import Adapter, Bound, Emulator, MemoryFlags
from paceline.engines.parallel import Parallelism
from paceline.engines.sglang_jax.argv import (
    JIT_CACHE,
    PORT,
    PROGRAM,
    argv,
    env,
    expected,
    running_requests,
    verify_tokens,
)
from paceline.engines.sglang_jax.capabilities import CAPABILITIES
from paceline.engines.sglang_jax.importing import IMPORTING
from paceline.engines.sglang_jax.losses import loses, refuses, tools_need
from paceline.engines.sglang_jax.monitor import MONITOR
from paceline.engines.sglang_jax.probe import probe
from paceline.engines.sglang_jax.rules import (
    COMPARED,
    LISTED,
    MOVED,
    eagle3_targets,
    flag_list,
    is_known,
    refusals,
)
from paceline.engines.sglang_jax.starts import START_LINES

_BOUNDS = {"--max-running-requests": "requests", "--context-length": "context", "--max-total-tokens": "tokens"}


def _bounds(server: Server) -> Mapping[str, Bound]:
    return limits.bounds(flag_list(server.engine.version).parse(server.engine.args), _BOUNDS)


_PARALLELISM = Parallelism(
    groups=("--dp-size", "--data-parallel-size"),  # its tensor parallelism counts all devices
    source="managers/scheduler.py:350",
)
ADAPTER = Adapter(
    capabilities=CAPABILITIES,
    program=PROGRAM,
    port=PORT,
    newest=LISTED,
    reads=is_known,
    argv=argv,
    running_requests=running_requests,
    env=env,
    expected=expected,
    verify_tokens=verify_tokens,
    compared=COMPARED,
    common={"quantization": "quantization", "kv_cache_dtype": "kv_cache_dtype"},
    moved=lambda _: MOVED,
    refusals=refusals,
    bounds=_bounds,
    parallel=lambda server: _PARALLELISM.refusals(server, flag_list(server.engine.version)),
    attention_groups=lambda server: _PARALLELISM.attention_groups(server, flag_list(server.engine.version)),
    eagle3_targets=eagle3_targets,
    memory_flags=MemoryFlags(
        static_share="--mem-fraction-static",
        context="--context-length",
        tokens="--max-total-tokens",
        cache_type="--kv-cache-dtype",
        quantization="--quantization",
        expert_parallel="--ep-size",
    ),
    ready_path=lambda _: "/health_generate",
    ready_answer_seconds=lambda _: 25,  # it generates a token: never under a second, up to 20
    health_path="/health",  # only shows that the process answers; its own watchdog ends a hanging scheduler
    health_timeout_seconds=5,
    probe=probe,
    monitor=lambda _: MONITOR,
    jit_cache=JIT_CACHE,
    importing=IMPORTING,
    emulator=Emulator(module="paceline_emulator.sglang_jax"),
    interrupted="sgl_jax[.]launch_server",
    starts=START_LINES,
    seed_argument="random_seed",
    loses=loses,
    refuses=refuses,
    tools_need=tools_need,
)
