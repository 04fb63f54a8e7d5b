"""SGLang: argv, environment and the arguments that must not move between arms.

Sources: SGLang 0.5.23's own argument tables (`srt/arg_groups/fields/*`) and resolution pipeline.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from paceline.core import Arm, Draft, Server, Tree
from paceline.core.names import MODELS, snapshot_path
from paceline.engines.adapter import Adapter, Refusal, Scalar
from paceline.engines.sglang_probe import probe

PORT = 30000
JIT_CACHE = "/jit"

# SGLang lowers max_running_requests to 48 as soon as it speculates and leaves the baseline unlimited: above a
# concurrency of 48 the arms would differ in more than the tree, so every arm gets the same number.
FEWEST_RUNNING_REQUESTS = 48

# The default of 40 steps between two reports loses the tail of a short workload from the acceptance length.
DECODE_LOG_INTERVAL = 10

OWNED = (
    "--model-path", "--model", "--revision", "--served-model-name", "--host", "--port", "--config",
    "--tp-size", "--tensor-parallel-size", "--tp", "--trust-remote-code", "--enable-metrics", "--random-seed",
    "--decode-log-interval", "--api-key", "--admin-api-key", "--download-dir", "--nnodes", "--node-rank",
    "--dist-init-addr",
)  # fmt: skip
OWNED_PREFIX = "--speculative-"

BACKENDS_PINNED_BY = (("--attention-backend",), ("--prefill-attention-backend", "--decode-attention-backend"))
"""Either of these leaves SGLang no choice of attention backend."""
"""All that begins with it; and, as argparse takes any beginning of a flag for the flag, all that this begins with."""

# Not compared: overlap scheduling and mixed chunks. Some algorithms cannot run with them (and nothing speculative can
# on a CPU), so losing them is part of what speculation costs.
COMPARED = (
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size",
    "max_running_requests", "mem_fraction_static", "context_length", "dtype", "kv_cache_dtype", "quantization",
    "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "random_seed", "tp_size", "sampling_backend",
    "disable_radix_cache", "decode_log_interval", "moe_runner_backend", "moe_a2a_backend",
)  # fmt: skip
COMPARED_FLAGS = tuple(f"--{argument.replace('_', '-')}" for argument in COMPARED)


def argv(server: Server, arm: Arm) -> tuple[str, ...]:
    """The whole command of one arm; what is measured and what is served are this, byte for byte."""
    return (*_common(server), *_speculation(arm), *server.engine.args, *arm.args)


def env(server: Server) -> tuple[Mapping[str, Any], ...]:
    """The same on every arm. A user's variable of the same name wins."""
    ours = {
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": f"{MODELS}/hub",
        "SGLANG_CACHE_DIR": JIT_CACHE,
        # Heads are trained on short contexts; without it SGLang refuses a head shorter than its target.
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    theirs = {variable["name"] for variable in server.engine.env}
    return (
        *({"name": name, "value": value} for name, value in ours.items() if name not in theirs),
        *server.engine.env,
    )


def expected(server: Server, arm: Arm) -> Mapping[str, Scalar]:
    """What `/server_info` must say of this arm; anything else is another experiment."""
    shape = {} if arm.draft and arm.tree is None else _tree_values(arm.tree)
    return {
        "served_model_name": server.served_name,
        "tp_size": server.accelerator.tensor_parallel_size,
        "random_seed": 0,
        "decode_log_interval": DECODE_LOG_INTERVAL,
        "max_running_requests": running_requests(server),
        "speculative_algorithm": arm.draft.algorithm if arm.draft else None,
        **shape,
    }


def _tree_values(tree: Tree | None) -> Mapping[str, Scalar]:
    """None for the baseline. A draft without a tree (NGRAM) takes a shape of the server's own, not asked for."""
    return {
        "speculative_num_steps": tree.num_steps if tree else None,
        "speculative_eagle_topk": tree.top_k if tree else None,
        "speculative_num_draft_tokens": tree.num_draft_tokens if tree else None,
    }


def running_requests(server: Server) -> int:
    """The user's --max-running-requests, or room for twice the largest concurrency that is measured."""
    asked = flag_value(server.engine.args, "--max-running-requests")
    return int(asked) if asked is not None else max(FEWEST_RUNNING_REQUESTS, 2 * server.largest_concurrency)


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    """Arguments that Paceline owns, duplicates, and trees that the pasted arguments cannot carry."""
    return (
        *_refused_args("engine.args", None, server.engine.args),
        *(refusal for arm in arms for refusal in _refused_of_an_arm(server, arm)),
        *_branching_without_backend(server, arms),
    )


def flag_name(argument: str) -> str:
    return argument.split("=", 1)[0]


def flag_value(args: tuple[str, ...], flag: str) -> str | None:
    """The value of `--flag=value` or `--flag value`."""
    for index, argument in enumerate(args):
        name, equals, value = argument.partition("=")
        if name == flag:
            return value if equals else (args[index + 1] if index + 1 < len(args) else None)
    return None


def _common(server: Server) -> tuple[str, ...]:
    pinned = (
        ()
        if flag_value(server.engine.args, "--max-running-requests") is not None
        else ("--max-running-requests", str(running_requests(server)))
    )
    assert server.target.commit, "a server is rendered after the prefetch has pinned its commit"
    return (
        "python3", "-m", "sglang.launch_server",
        "--model-path", snapshot_path(server.target.source, server.target.commit),
        "--served-model-name", server.served_name,
        "--host", "0.0.0.0",
        "--port", str(PORT),
        "--tp-size", str(server.accelerator.tensor_parallel_size),
        *(("--trust-remote-code",) if server.engine.trust_remote_code else ()),
        "--enable-metrics",
        "--random-seed", "0",
        "--decode-log-interval", str(DECODE_LOG_INTERVAL),
        *pinned,
    )  # fmt: skip


def _speculation(arm: Arm) -> tuple[str, ...]:
    if arm.draft is None:
        return ()
    return ("--speculative-algorithm", arm.draft.algorithm, *_head(arm.draft), *_tree(arm.tree))


def _head(draft: Draft) -> tuple[str, ...]:
    if draft.model is None:
        return ()
    assert draft.model.commit, "a head is rendered after the prefetch has pinned its commit"
    return ("--speculative-draft-model-path", snapshot_path(draft.model.source, draft.model.commit))


def _tree(tree: Tree | None) -> tuple[str, ...]:
    if tree is None:
        return ()
    return (
        "--speculative-num-steps", str(tree.num_steps),
        "--speculative-eagle-topk", str(tree.top_k),
        "--speculative-num-draft-tokens", str(tree.num_draft_tokens),
    )  # fmt: skip


def _refused_args(at: str, arm: str | None, args: tuple[str, ...], before: Collection[str] = ()) -> Iterator[Refusal]:
    """`before`: flags of the same command line that stand elsewhere."""
    seen = set(before)
    for i, argument in enumerate(args):
        path, name = f"{at}[{i}]", flag_name(argument)
        if "$(" in argument:  # the kubelet would fill it in where it is served, and nobody where it is measured
            yield Refusal(path=path, arm=arm, message=f"{argument}: $(VAR) is not filled in; write the value")
        if not name.startswith("--"):
            continue
        if owned := _meant(name, (*OWNED, OWNED_PREFIX)) or (OWNED_PREFIX if name.startswith(OWNED_PREFIX) else None):
            read_as = f" (read as {owned})" if not name.startswith(owned) else ""
            yield Refusal(
                path=path, arm=arm, message=f"{name}{read_as} is set by Paceline from the resource; remove it"
            )
        elif name in seen:
            yield Refusal(path=path, arm=arm, message=f"{name} is given twice; keep one")
        seen.add(name)


def _refused_of_an_arm(server: Server, arm: Arm) -> Iterator[Refusal]:
    yield from _refused_args("args", arm.name, arm.args, _flags(server.engine.args))
    for i, argument in enumerate(arm.args):
        if not (name := flag_name(argument)).startswith("--"):
            continue
        if not _meant(name, OWNED) and (compared := _meant(name, COMPARED_FLAGS)):
            what = "is" if name == compared else f"(read as {compared}) is"
            yield Refusal(
                path=f"args[{i}]",
                arm=arm.name,
                message=f"{name} {what} compared and must not differ between arms; set it in spec.engine.args",
            )


def _flags(args: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(flag_name(argument) for argument in args if argument.startswith("--"))


def _meant(name: str, flags: tuple[str, ...]) -> str | None:
    """The flag itself, or the first that it may be short for."""
    return name if name in flags else next((flag for flag in flags if flag.startswith(name)), None)


def _branching_without_backend(server: Server, arms: tuple[Arm, ...]) -> Iterator[Refusal]:
    """SGLang picks another attention backend when topk > 1, so the arms would differ in more than the tree."""
    if any(all(flag_value(server.engine.args, flag) is not None for flag in flags) for flags in BACKENDS_PINNED_BY):
        return
    for arm in arms:
        if arm.tree and arm.tree.top_k > 1:
            yield Refusal(
                path="engine.args",
                message=f"candidate {arm.name} has topK {arm.tree.top_k}: SGLang would change the attention backend "
                "behind it; add --attention-backend=triton (or fa3, flashinfer)",
            )


ADAPTER = Adapter(
    port=PORT,
    argv=argv,
    env=env,
    expected=expected,
    compared=COMPARED,
    refusals=refusals,
    eagle3_targets=lambda _: None,
    ready_path=lambda _: "/ready",
    health_path="/health",
    health_timeout_seconds=25,  # /health generates a token: never under a second, up to 20
    probe=probe,
    jit_cache=JIT_CACHE,
)
