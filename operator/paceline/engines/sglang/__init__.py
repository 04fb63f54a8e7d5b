"""SGLang: how an arm becomes a server of the image's version, and which arms are refused.

`versions` has the known releases with their flags, `arguments` who sets those, `rules` all refusals and their reasons.
Sources: the wheels of 0.4.5, 0.5.6 and 0.5.23, read; the last also run.
"""

from collections.abc import Mapping

from paceline.core import Server
from paceline.engines import bounds as limits
from paceline.engines.adapter import Adapter, Bound, Emulator, MemoryFlags
from paceline.engines.arguments import read_data
from paceline.engines.parallel import Parallelism
from paceline.engines.sglang import custom, flags_by_release, schedule
from paceline.engines.sglang.arguments import COMPARED, MOVED, flag_list
from paceline.engines.sglang.argv import JIT_CACHE, PORT, PROGRAM, argv, env, expected, running_requests, verify_tokens
from paceline.engines.sglang.capabilities import CAPABILITIES
from paceline.engines.sglang.importing import IMPORTING
from paceline.engines.sglang.model_rules import MODEL_RULES
from paceline.engines.sglang.monitor import monitor
from paceline.engines.sglang.probe import probe
from paceline.engines.sglang.rules import refusals
from paceline.engines.sglang.starts import START_LINES
from paceline.engines.sglang.variables import ignored
from paceline.engines.sglang.versions import KNOWN, is_newer, known_release


def _eagle3_targets(version: str) -> frozenset[str] | None:
    """The targets that support an EAGLE3 head; None for a release newer than all known ones, which may support any
    target."""
    return None if is_newer(version) else flags_by_release.eagle3_targets(version)


def eagle3_since(architecture: str) -> str | None:
    known = flags_by_release.eagle3_targets
    return next((one for one in flags_by_release.releases() if architecture in known(one)), None)


_BOUNDS = {"--max-running-requests": "requests", "--context-length": "context", "--max-total-tokens": "tokens"}


def _bounds(server: Server) -> Mapping[str, Bound]:
    return limits.bounds(flag_list(server.engine.version).parse(server.engine.args), _BOUNDS)


_PARALLELISM = Parallelism(
    copies=("--dp-size", "--data-parallel-size", "--pp-size", "--pipeline-parallel-size"),
    groups=(
        "--attn-dp-size",
        "--attention-data-parallel-size",
        "--attn-cp-size",
        "--attention-context-parallel-size",
    ),
    grouping="--enable-dp-attention",
    regrouped=("--dp-size", "--data-parallel-size"),
    source="arg_groups/parallel_hook.py:52, :157 and :326",
)
ADAPTER = Adapter(
    capabilities=CAPABILITIES,
    program=PROGRAM,
    port=PORT,
    newest=KNOWN[-1].version,
    reads=lambda version: not is_newer(version),
    argv=argv,
    running_requests=running_requests,
    env=env,
    expected=expected,
    verify_tokens=verify_tokens,
    compared=COMPARED,
    common={"quantization": "quantization", "kv_cache_dtype": "kv_cache_dtype"},
    moved=lambda arms: (*MOVED, *custom.moved(arms)),
    refusals=refusals,
    bounds=_bounds,
    ignored=ignored,
    parallel=lambda server: _PARALLELISM.refusals(server, flag_list(server.engine.version)),
    attention_groups=lambda server: _PARALLELISM.attention_groups(server, flag_list(server.engine.version)),
    eagle3_targets=_eagle3_targets,
    eagle3_since=eagle3_since,
    whole_models=lambda version: _eagle3_targets(version) or frozenset(),
    model_rules=MODEL_RULES,
    memory_flags=MemoryFlags(
        static_share="--mem-fraction-static",
        context="--context-length",
        tokens="--max-total-tokens",
        cache_type="--kv-cache-dtype",
        quantization="--quantization",
        expert_parallel="--ep-size",
    ),
    ready_path=lambda version: known_release(version).ready,
    ready_answer_seconds=lambda version: known_release(version).ready_seconds,
    health_path="/health",
    health_timeout_seconds=25,  # /health generates a token: never under a second, up to 20
    probe=probe,
    monitor=monitor,
    jit_cache=JIT_CACHE,
    importing=IMPORTING,
    variables=("SGLANG", "SGL"),
    known_problems=tuple(read_data(__package__, "known-problems.json")),
    emulator=Emulator(module="paceline_emulator", releases=("0.4.5", "0.5.6")),
    interrupted="sglang[.]launch_server",
    starts=START_LINES,
    seed_argument="random_seed",
    files=schedule.files,
)
