"""An arm as a vLLM process: its argv, its environment, and the arguments that the process must report."""

from collections.abc import Mapping
from typing import Any

from paceline.core import Arm, Server
from paceline.core.manifest import Scalar
from paceline.engines import command
from paceline.engines.environment import environment
from paceline.engines.release import release
from paceline.engines.vllm.arguments import FLAGS
from paceline.engines.vllm.keys import other_words
from paceline.engines.vllm.rules import KEY, RUNNING_REQUESTS, running_requests
from paceline.engines.vllm.runner import RUNNER
from paceline.engines.vllm.speculative import expected as of_speculation
from paceline.engines.vllm.speculative import speculation

PROGRAM = ("vllm", "serve")
PORT = 8000
JIT_CACHE = "/jit"

_DEFAULTS = {
    # Requests without sampling parameters use the model's, as on SGLang, except min_p: with it vLLM answers 400 once it
    # speculates (sampling_params.py:1193).
    "--override-generation-config": '{"min_p":0}',
}
"""Set on every arm, unless the resource says otherwise."""
DRAINS = (0, 33)
"""The first release known to finish running requests after SIGTERM, if it is given a timeout; by default it aborts them
(entrypoints/launchers/launcher.py:269, config/vllm.py:454)."""
DRAIN_SECONDS = 120
"""The time that servers of the other engines, which wait for every request, get before they are killed."""


def argv(server: Server, arm: Arm) -> tuple[str, ...]:
    """The whole command of one arm, byte for byte the same in rounds and in service."""
    return (*_common(server), *speculation(server, arm), *server.engine.args, *other_words(arm))


def env(server: Server) -> tuple[Mapping[str, Any], ...]:
    """Equal on all arms. A user's variable with the same name wins."""
    own = {
        "VLLM_CACHE_ROOT": JIT_CACHE,
        "VLLM_NO_USAGE_STATS": "1",
        # Otherwise vLLM uses its V1 runner for what V2 lacks, and the arm runs another engine than the baseline.
        RUNNER: "1",
    }
    key = server.engine.api_key
    reference = {"secretKeyRef": {"name": key.name, "key": key.key}} if key else None
    return environment(server, own, ({"name": KEY, "valueFrom": reference},) if reference else ())


def expected(server: Server, arm: Arm) -> Mapping[str, Scalar]:
    """The arguments of this arm in the start log and the metrics; with other values it would be another experiment."""
    return {
        "served_model_name": server.served_name,
        "tensor_parallel_size": server.accelerator.tensor_parallel_size,
        "seed": 0,
        **of_speculation(arm),
    }


def _common(server: Server) -> tuple[str, ...]:
    known = release(server.engine.version)
    drain = {"--shutdown-timeout": str(DRAIN_SECONDS)} if known and known >= DRAINS else {}
    defaults = {RUNNING_REQUESTS: str(running_requests(server)), **_DEFAULTS, **drain}
    return (
        *PROGRAM, command.model_path(server.target),
        "--served-model-name", server.served_name,
        "--host", "0.0.0.0",
        "--port", str(PORT),
        "--tensor-parallel-size", str(server.accelerator.tensor_parallel_size),
        *(("--trust-remote-code",) if server.engine.trust_remote_code else ()),
        "--seed", "0",
        *command.unless_given(server, defaults, FLAGS),
    )  # fmt: skip
