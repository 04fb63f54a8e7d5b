"""vLLM.

`argv` is how an arm becomes a process, `arguments` the flags and who sets them, `rules` all refusals and their reasons,
`probe` how a round reads a server. Sources: vLLM 0.33.0 (its wheel on PyPI); paths are below `vllm/`. Unlike SGLang's,
speculation is one JSON argument, a tree is a chain, and `/health` answers instantly.
"""

from collections.abc import Mapping

from paceline.core import Server
from paceline.engines import bounds as limits
from paceline.engines.adapter import Adapter, Bound, Emulator, MemoryFlags
from paceline.engines.arguments import read_data
from paceline.engines.parallel import Parallelism
from paceline.engines.release import release
from paceline.engines.vllm.arguments import COMPARED, FLAGS, LISTED_VERSION, MOVED
from paceline.engines.vllm.argv import JIT_CACHE, PORT, PROGRAM, argv, env, expected
from paceline.engines.vllm.capabilities import CAPABILITIES
from paceline.engines.vllm.importing import IMPORTING
from paceline.engines.vllm.model_rules import MODEL_RULES
from paceline.engines.vllm.monitor import MONITOR
from paceline.engines.vllm.probe import probe
from paceline.engines.vllm.rules import draft_tokens, refusals, running_requests
from paceline.engines.vllm.starts import START_LINES
from paceline.engines.vllm.targets import loses, tools_need, without_hidden_states

_BOUNDS = {"--max-num-seqs": "requests", "--max-model-len": "context"}
AUTO = ("--max-model-len=-1",)
"""config/model.py:2642."""


def _bounds(server: Server) -> Mapping[str, Bound]:
    return limits.bounds(FLAGS.parse(server.engine.args), _BOUNDS, auto=AUTO)


_PARALLELISM = Parallelism(
    copies=(
        "--data-parallel-size",
        "--pipeline-parallel-size",
        "--prefill-context-parallel-size",
    ),
    shares=("--decode-context-parallel-size",),
    source="config/parallel.py: world_size, and decode_context_parallel_size divides tensor_parallel_size",
)
ADAPTER = Adapter(
    capabilities=CAPABILITIES,
    program=PROGRAM,
    port=PORT,
    newest=LISTED_VERSION,
    reads=lambda version: release(version) == release(LISTED_VERSION),
    argv=argv,
    running_requests=running_requests,
    env=env,
    expected=expected,
    verify_tokens=lambda arm: 1 + draft_tokens(arm),
    compared=COMPARED,
    resolved_as={"max_model_len": "max_seq_len"},
    common={"quantization": "quantization", "kv_cache_dtype": "kv_cache_dtype"},
    moved=lambda _: MOVED,
    refusals=refusals,
    bounds=_bounds,
    parallel=lambda server: _PARALLELISM.refusals(server, FLAGS),
    attention_groups=lambda server: _PARALLELISM.attention_groups(server, FLAGS),
    eagle3_targets=lambda _: None,  # every model served through Transformers has it: see without_hidden_states
    model_rules=MODEL_RULES,
    memory_flags=MemoryFlags(
        static_share="--gpu-memory-utilization",
        context="--max-model-len",
        cache_type="--kv-cache-dtype",
        quantization="--quantization",
    ),
    ready_path=lambda _: "/health",  # the port is open only once the engine is up
    health_path="/health",
    health_timeout_seconds=5,
    probe=probe,
    monitor=lambda _: MONITOR,
    jit_cache=JIT_CACHE,
    importing=IMPORTING,
    variables=("VLLM",),
    known_problems=tuple(read_data(__package__, "known-problems.json")),
    emulator=Emulator(module="paceline_emulator.vllm", words=("serve",), profiles="paceline_emulator.vllm.profiles"),
    starts=START_LINES,
    seed_argument="seed",
    without_hidden_states=without_hidden_states,
    loses=loses,
    tools_need=tools_need,
)
