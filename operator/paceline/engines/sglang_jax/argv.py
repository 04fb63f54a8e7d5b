"""sglang-jax: argv, environment, and the arguments that a server must report.

Sources: sglang-jax 0.1.0rc0 (its wheel on PyPI) and sgl-project/sglang-jax at cddbf6f, below `sgl_jax/srt/`.
"""

from collections.abc import Mapping
from typing import Any

from paceline.core import Arm, Draft, Server
from paceline.core.manifest import Scalar
from paceline.engines import command, keys
from paceline.engines.environment import environment
from paceline.engines.nodes import ranks

PROGRAM = ("python3", "-u", "-m", "sgl_jax.launch_server")
PORT = 30000
JIT_CACHE = "/jit"

_RUNNING_REQUESTS = "--max-running-requests"
_FEWEST_RUNNING_REQUESTS = 64
"""Token buckets below it are dropped (model_executor/compilation_manager.py:69), and the smallest of them is 64; by
default the server accepts thousands and pads every prefill to the largest bucket."""

PINNED = {
    # Speculation's buffers are float32 if the model's own type is used (speculative/base_worker.py:124).
    "--dtype": "bfloat16",
    # Draft weights and speculation's KV come on top of it (model_runner_kv_cache_mixin.py:786); the default is 0.88.
    "--mem-fraction-static": "0.8",
    # Seconds. Compiling while serving counts as silence; the default of 300 ends the server.
    "--watchdog-timeout": "1200",
}
"""Set on every arm, unless the resource says otherwise."""

_DECODE_LOG_INTERVAL = 1
"""Every decode step has its own line: lines carry no weights, so two steps in one line could not be separated."""


def argv(server: Server, arm: Arm) -> tuple[str, ...]:
    """The whole command of one arm, byte for byte the same in rounds and in service."""
    return (*_common(server), *_speculation(arm), *server.engine.args, *arm.args)


def env(server: Server) -> tuple[Mapping[str, Any], ...]:
    """Equal on all arms. A user's variable with the same name wins."""
    own = {
        "JAX_COMPILATION_CACHE_DIR": JIT_CACHE,  # without it every start would compile for minutes
    }
    return environment(server, own, keys.env(server))


def expected(server: Server, arm: Arm) -> Mapping[str, Scalar]:
    """The arguments of this arm in `/get_server_info`. A baseline shows speculation's unused defaults: not compared."""
    speculation = dict(zip(_FIELDS, _shape(arm), strict=False)) if arm.draft else {}
    return {
        "served_model_name": server.served_name,
        "tp_size": server.accelerator.tensor_parallel_size,
        "random_seed": 0,
        "decode_log_interval": _DECODE_LOG_INTERVAL,
        "max_running_requests": running_requests(server),
        "speculative_algorithm": arm.draft.algorithm if arm.draft else None,
        **speculation,
    }


def running_requests(server: Server) -> int:
    return command.running_requests(server, _RUNNING_REQUESTS, _FEWEST_RUNNING_REQUESTS)


def _common(server: Server) -> tuple[str, ...]:
    defaults = {_RUNNING_REQUESTS: str(running_requests(server)), **PINNED}
    return (
        *PROGRAM,
        "--model-path", command.model_path(server.target),
        "--served-model-name", server.served_name,
        "--host", "0.0.0.0",
        "--port", str(PORT),
        "--tp-size", str(server.accelerator.tensor_parallel_size),
        *(("--trust-remote-code",) if server.engine.trust_remote_code else ()),
        "--random-seed", "0",
        "--decode-log-interval", str(_DECODE_LOG_INTERVAL),
        *keys.argv(server),
        *ranks(server),
        *command.unless_given(server, defaults),
    )  # fmt: skip


def _speculation(arm: Arm) -> tuple[str, ...]:
    """Both models are directories of their commits, so no revision is given: the target's would also be applied to the
    draft."""
    if arm.draft is None:
        return ()
    shape = (word for flag, value in zip(_FLAGS, _shape(arm), strict=True) for word in (flag, str(value)))
    return ("--speculative-algorithm", arm.draft.algorithm, *_head(arm.draft), *shape)


_FIELDS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
_FLAGS = tuple(f"--{field.replace('_', '-')}" for field in _FIELDS)


def _shape(arm: Arm) -> tuple[int, int, int]:
    """Steps, topk and tokens, always all three: their defaults do not match each other.

    A block (DFLASH) is one step of that many tokens.
    """
    if arm.tree:
        return arm.tree.num_steps, arm.tree.top_k, verify_tokens(arm)
    assert arm.block_size, "other shapes are refused before anything is rendered"
    return 1, 1, verify_tokens(arm)


def verify_tokens(arm: Arm) -> int:
    """Tokens per verify step, including the root. Arms with another shape are refused."""
    return arm.tree.num_draft_tokens if arm.tree else arm.block_size or 1


def _head(draft: Draft) -> tuple[str, ...]:
    return ("--speculative-draft-model-path", command.model_path(draft.model)) if draft.model else ()
