"""An arm as a process: its argv, its environment, and the arguments that the process must report."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Arm, Server
from paceline.core.manifest import Scalar
from paceline.engines import command, keys
from paceline.engines.arguments import flag_value
from paceline.engines.environment import environment
from paceline.engines.nodes import ranks
from paceline.engines.sglang import custom, schedule
from paceline.engines.sglang.candidate import NGRAM_BREADTH, NGRAM_TOKENS, RUNS_AS
from paceline.engines.sglang.flags_by_release import ngram

PROGRAM = ("python3", "-m", "sglang.launch_server")
PORT = 30000
JIT_CACHE = "/jit"

_RUNNING_REQUESTS = "--max-running-requests"
_FEWEST_RUNNING_REQUESTS = 48
"""SGLang lowers max_running_requests to 48 when it speculates and leaves the baseline unlimited: above a concurrency of
48 the arms would differ in more than the tree, so every arm gets the same number."""

_DECODE_LOG_INTERVAL = 10
"""The default of 40 steps between two reports misses the end of a short workload in the acceptance length."""

SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def argv(server: Server, arm: Arm) -> tuple[str, ...]:
    """The whole command of one arm, byte for byte the same in rounds and in service."""
    return (*_common(server), *_speculation(server, arm), *server.engine.args, *arm.args)


def env(server: Server) -> tuple[Mapping[str, Any], ...]:
    """Equal on all arms. A user's variable with the same name wins."""
    own = {
        "SGLANG_CACHE_DIR": JIT_CACHE,
        # Heads are trained on short contexts; without it SGLang refuses a head shorter than its target.
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
    }
    return environment(server, own, keys.env(server))


def expected(server: Server, arm: Arm) -> Mapping[str, Scalar]:
    """The resolved arguments of this arm; with other values it would be another experiment."""
    return {
        "served_model_name": server.served_name,
        "tp_size": server.accelerator.tensor_parallel_size,
        "random_seed": 0,
        "decode_log_interval": _DECODE_LOG_INTERVAL,
        "max_running_requests": running_requests(server),
        **_expected_speculation(arm),
        **(custom.expected(server.engine.version, arm) if arm.custom else {}),
    }


def running_requests(server: Server) -> int:
    return command.running_requests(server, _RUNNING_REQUESTS, _FEWEST_RUNNING_REQUESTS)


def _common(server: Server) -> tuple[str, ...]:
    return (
        *PROGRAM,
        "--model-path", command.model_path(server.target),
        "--served-model-name", server.served_name,
        "--host", "0.0.0.0",
        "--port", str(PORT),
        "--tp-size", str(server.accelerator.tensor_parallel_size),
        *ranks(server),
        *(("--trust-remote-code",) if server.engine.trust_remote_code else ()),
        *keys.argv(server),
        "--enable-metrics",
        "--random-seed", "0",
        "--decode-log-interval", str(_DECODE_LOG_INTERVAL),
        *command.unless_given(server, {_RUNNING_REQUESTS: str(running_requests(server))}),
    )  # fmt: skip


def _speculation(server: Server, arm: Arm) -> Iterator[str]:
    """NEXTN and MTP draft with the target's own layers if no head is named: SGLang finds them itself."""
    if arm.draft is None:
        return
    yield from ("--speculative-algorithm", _algorithm(arm))
    if arm.draft.model:
        yield from ("--speculative-draft-model-path", command.model_path(arm.draft.model))
    if tree := arm.tree:
        yield from ("--speculative-num-steps", str(tree.num_steps))
        yield from ("--speculative-eagle-topk", str(tree.top_k))
        yield from ("--speculative-num-draft-tokens", str(tree.num_draft_tokens))
    if arm.block_size:
        yield from (f"--speculative-{arm.draft.algorithm.lower()}-block-size", str(arm.block_size))
    if arm.ngram:
        for field, flag in ngram(server.engine.version).items():
            if (value := getattr(arm.ngram, field)) is not None:
                yield from (flag, str(value))
    if arm.adaptive:
        yield from ("--speculative-adaptive", "--speculative-eagle-topk", "1")
        if arm.adaptive.num_steps is not None:
            yield from ("--speculative-num-steps", str(arm.adaptive.num_steps))
    if arm.depth_by_batch_size:
        yield from schedule.argv(arm)
    if arm.custom:
        yield from arm.custom.args


def _algorithm(arm: Arm) -> str:
    assert arm.draft
    return custom.algorithm(arm) if arm.custom else RUNS_AS.get(arm.draft.algorithm, arm.draft.algorithm)


def verify_tokens(arm: Arm) -> int:
    """Tokens per verify step, including the root; the maximum if SGLang chooses the number."""
    if arm.custom:
        own = flag_value(arm.custom.args, "--speculative-num-draft-tokens")
        return int(own) if own and own.isdecimal() else MOST_ADAPTIVE_TOKENS
    if arm.adaptive:
        return MOST_ADAPTIVE_TOKENS
    if arm.depth_by_batch_size:
        return 1 + arm.deepest
    if arm.tree:
        return arm.tree.num_draft_tokens
    if arm.block_size and arm.draft:
        return arm.block_size + BLOCK_ROOT.get(arm.draft.algorithm, 0)
    if ngram := arm.ngram:
        return ngram.num_draft_tokens or ngram.max_match or NGRAM_TOKENS
    return 1


def _expected_speculation(arm: Arm) -> Mapping[str, Scalar]:
    """NGRAM, DFLASH and DSPARK get one number; SGLang's hooks derive the rest (0.5.23, tried)."""
    if arm.draft is None:
        return {"speculative_algorithm": None, **dict.fromkeys(SHAPE)}
    shape: dict[str, Scalar] = {"speculative_algorithm": _algorithm(arm)}
    if tree := arm.tree:
        shape |= zip(SHAPE, (tree.num_steps, tree.top_k, verify_tokens(arm)), strict=True)
    if arm.block_size:
        shape |= {"speculative_eagle_topk": 1, "speculative_num_draft_tokens": verify_tokens(arm)}
    if ngram := arm.ngram:
        shape |= {
            "speculative_eagle_topk": ngram.breadth or NGRAM_BREADTH,
            "speculative_num_draft_tokens": verify_tokens(arm),
        }
    if arm.adaptive:
        shape |= {"speculative_adaptive": True, "speculative_eagle_topk": 1}
        if arm.adaptive.num_steps is not None:
            shape["speculative_num_steps"] = arm.adaptive.num_steps
    if arm.depth_by_batch_size:
        # Without the file: its path differs in a round without a cluster.
        shape |= {"speculative_adaptive": True, "speculative_eagle_topk": 1}
        shape |= {"speculative_num_steps": arm.deepest, "speculative_num_draft_tokens": verify_tokens(arm)}
    return shape


BLOCK_ROOT = {"DFLASH": 0, "DSPARK": 1}
"""DFLASH's block includes the root, DSPARK's follows it."""

MOST_ADAPTIVE_TOKENS = 8
"""The deepest step of SGLang 0.5.23's own adaptive configuration (7) plus the root; also for custom algorithms."""
