"""What sglang-jax cannot be started with: a table of rules, each with its source.

Sources are below `sgl_jax/srt/` of sglang-jax at cddbf6f (`SA` is `server_args.py`); 0.1.0rc0 says the same. Refused
before, by the API itself (`api/compatibility.py`): algorithms it has not (for STANDALONE no draft worker is
built, managers/scheduler.py:383), shapes that are no chain of at least two steps (with topk above 1 the server dies at
its first draft, speculative/eagle_draft_worker.py:417, with one step while it compiles, speculative/base_worker.py:89),
and accelerators that are no TPU.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from paceline.core import Arm, Server
from paceline.engines.adapter import Refusal
from paceline.engines.keys import API_KEY
from paceline.engines.release import release

LISTED = "0.1.0rc0"
"""The release whose flags we know, by `tests/contract/make_sglang_jax_flags.py`. It serves for all up to it."""

OWNED = (
    "--model-path", "--model", "--revision", "--served-model-name", "--host", "--port", "--tensor-parallel-size",
    "--tp-size", "--trust-remote-code", "--random-seed", "--decode-log-interval", "--api-key", "--download-dir",
    "--nnodes", "--node-rank", "--dist-init-addr",
)  # fmt: skip
OWNED_PREFIX = "--speculative-"
"""All that begins with it. And as argparse takes any beginning of a flag for the flag, all that these begin with."""

COMPARED = (
    "attention_backend", "page_size", "max_running_requests", "mem_fraction_static", "context_length", "dtype",
    "kv_cache_dtype", "quantization", "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "random_seed",
    "tp_size", "dp_size", "moe_backend", "disable_radix_cache", "disable_overlap_schedule", "enable_mixed_chunk",
    "disable_precompile", "decode_log_interval",
)  # fmt: skip
"""What every server must say; all else is compared, too, but for MOVED. Unlike on SGLang, overlap scheduling too:
speculation does not switch it off, a flag of ours does, on every arm."""
MOVED = ("speculative_*", "max_total_num_tokens", "max_req_input_len")
"""Not compared: speculation's own, and the KV cache that a draft leaves."""
OWN_FLAGS: frozenset[str] = frozenset()
"""Flags that a candidate's `args` may hold. None: all that begins with OWNED_PREFIX is made of the resource, and
everything else is said in spec.engine.args, for all arms (docs/decisions/0020)."""

CHAINED = ("EAGLE", "EAGLE3", "NEXTN")
"""Whose prefix cache keeps pairs of tokens (speculative/spec_info.py:69, mem_cache/radix_cache.py:194)."""
PAGE_SIZE, NO_PREFIX_CACHE = "--page-size", "--disable-radix-cache"

EAGLE3_OVERLAPS = (0, 1, 0)
"""Since the commit before cddbf6f (#1534): not in any 0.0.x."""
OVERLAP, GRAMMAR = "--disable-overlap-schedule", "--grammar-backend"
LORA = ("--enable-lora", "--enable-static-lora", "--lora-paths")
NUMBERS = {"int": r"[+-]?\d+", "float": r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"}
HOOKED = frozenset({"LlamaForCausalLM", "Qwen3ForCausalLM"})
"""Targets with `set_eagle3_layers_to_capture` (models/llama.py, models/qwen3.py). Others, Qwen3-MoE among them, load
for minutes and then end with an AttributeError (model_executor/model_runner.py:592)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`why` is one line with its source; `broken` yields (arm or None, path below it, message) as in a Refusal."""

    id: str
    why: str
    broken: Callable[[Server, tuple[Arm, ...]], Iterator[tuple[str | None, str, str]]]


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    return tuple(
        Refusal(rule=rule.id, arm=arm, path=path, message=message)
        for rule in RULES
        for arm, path, message in rule.broken(server, arms)
    )


def eagle3_targets(version: str) -> frozenset[str] | None:
    return HOOKED if _known(version) else None


def flag_name(argument: str) -> str:
    return argument.split("=", 1)[0]


def flag_value(args: tuple[str, ...], flag: str) -> str | None:
    """The value of `--flag=value` or `--flag value`."""
    for index, argument in enumerate(args):
        name, equals, value = argument.partition("=")
        if name == flag:
            return value if equals else (args[index + 1] if index + 1 < len(args) else None)
    return None


Found = Iterator[tuple[str | None, str, str]]


def _owned(server: Server, arms: tuple[Arm, ...]) -> Found:
    for arm, path, name in _flags(server, arms):
        if owned := _owner(name):
            read_as = "" if name.startswith(owned) else f" (read as {owned})"
            yield arm, path, f"{name}{read_as} is set by Paceline from the resource; remove it"


def _unknown(server: Server, arms: tuple[Arm, ...]) -> Found:
    if not _known(server.engine.version):
        return
    for arm, path, name in _flags(server, arms):
        if not _owner(name) and not any(flag.startswith(name) for flag in _listed()):
            nearest = difflib.get_close_matches(name, _listed(), n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            yield arm, path, f"{name} is no flag of sglang-jax {LISTED}{hint}"


def _misvalued(server: Server, arms: tuple[Arm, ...]) -> Found:
    """One value; the few flags with several are left to the server."""
    for arm, path, flag, value in _values(server, arms):
        about = _listed().get(flag)
        if about is None or "many" in about or _owner(flag) or not _known(server.engine.version):
            continue
        if about["kind"] == "switch":
            if value:
                yield arm, path, f"{flag} takes no value; write it alone"
        elif value is None:
            yield arm, path, f"{flag} needs a value; write {flag}=VALUE"
        elif value not in about.get("choices", (value,)):
            yield arm, path, f"{flag} has no choice {value}; take {', '.join(about['choices'])}"
        elif about["kind"] in NUMBERS and not re.fullmatch(NUMBERS[about["kind"]], value):
            yield arm, path, f"{flag} takes a number; got {value}"


def _abbreviated(server: Server, arms: tuple[Arm, ...]) -> Found:
    for arm, path, name in _flags(server, arms):
        meant = sorted(flag for flag in _listed() if flag.startswith(name))
        if meant and name not in meant and not _owner(name):
            yield arm, path, f"{name} is short for {' or '.join(meant[:3])}; write the flag in full"


def _twice(server: Server, arms: tuple[Arm, ...]) -> Found:
    shared: set[str] = set()
    own: dict[str | None, set[str]] = {}
    for arm, path, name in _flags(server, arms):
        seen = shared if arm is None else own.setdefault(arm, set(shared))
        if name in seen and not _owner(name):
            yield arm, path, f"{name} is given twice; keep one"
        seen.add(name)


def _filled_in(server: Server, arms: tuple[Arm, ...]) -> Found:
    for arm, path, argument in _arguments(server, arms):
        if "$(" in argument:
            yield arm, path, f"{argument}: $(VAR) is not filled in; write the value"


def _differs(server: Server, arms: tuple[Arm, ...]) -> Found:
    """An allow list. What is no flag, or none in full, is told by another rule."""
    for arm, path, name in _flags(None, arms):
        known = name in _listed() or not _known(server.engine.version)
        if known and name not in OWN_FLAGS and not _owner(name):
            message = f"{name} is no part of speculation, and arms may differ in nothing else"
            yield arm, path, f"{message}: set it in spec.engine.args, for all arms"


def _kv_cache(server: Server, _: tuple[Arm, ...]) -> Found:
    path, value = _place(server, flag := "--kv-cache-dtype"), flag_value(server.engine.args, flag)
    if path is not None and value is not None and value.startswith("fp8"):
        yield None, path, f"{flag} {value} ends the server once the model is loaded; write bf16 or auto"


def _devices(server: Server, _: tuple[Arm, ...]) -> Found:
    if (path := _place(server, "--device-indexes")) is not None:
        yield (
            None, path,
            "--device-indexes must be left out: a server takes every device of its pod; "
            "set accelerator.count to as many as it needs",
        )  # fmt: skip


def _every_device(server: Server, _: tuple[Arm, ...]) -> Found:
    size, devices = server.accelerator.tensor_parallel_size, server.accelerator.count * server.accelerator.nodes
    if size != devices:
        yield (
            None, "accelerator.tensorParallelSize",
            f"tensorParallelSize must be count = {devices}: sglang-jax counts all devices, data parallelism included; "
            f"got {size}",
        )  # fmt: skip


def _two_devices(server: Server, _: tuple[Arm, ...]) -> Found:
    if server.accelerator.product == "tpu7x":
        yield (
            None,
            "accelerator.product",
            "tpu7x has two devices a chip, which Paceline does not count yet; use v6e or v5",
        )


def _overlap(server: Server, arms: tuple[Arm, ...]) -> Found:
    if _given(server.engine.args, OVERLAP):
        return
    for arm in arms:
        if arm.draft and not _overlaps(server, arm.draft.algorithm):
            yield (
                None, "engine.args",
                f"{OVERLAP} is missing: candidate {arm.name} ({arm.draft.algorithm}) cannot run with the overlap "
                f"scheduler{_with_backend(server)}, and what one arm runs without all run without",
            )  # fmt: skip


def _grammar(server: Server, arms: tuple[Arm, ...]) -> Found:
    if flag_value(server.engine.args, GRAMMAR) != "none" and (arm := _first(arms, "DFLASH")):
        yield None, "engine.args", f"{GRAMMAR}=none is missing: candidate {arm} (DFLASH) has no constrained decoding"


def _lora(server: Server, arms: tuple[Arm, ...]) -> Found:
    for flag in LORA:
        if (path := _place(server, flag)) is not None and (arm := _first(arms, "DFLASH")):
            yield None, path, f"{flag} does not go with DFLASH; remove it, or candidate {arm}"


def _recurrent(server: Server, arms: tuple[Arm, ...]) -> Found:
    flag = "--enable-recurrent-extra-buffer"
    if (path := _place(server, flag)) is not None and any(arm.draft for arm in arms):
        yield None, path, f"{flag} does not go with speculation; remove it"


def _pages(server: Server, arms: tuple[Arm, ...]) -> Found:
    """Captured at 1 and at 64, and at 1 without the prefix cache: that one frees all it took."""
    size = flag_value(server.engine.args, PAGE_SIZE)
    if size not in (None, "1") or _given(server.engine.args, NO_PREFIX_CACHE):
        return
    for arm in arms:
        if arm.draft and arm.draft.algorithm in CHAINED:
            yield (
                None, _place(server, PAGE_SIZE) or "engine.args",
                f"write {PAGE_SIZE}=64: with pages of one token, the default, candidate {arm.name} "
                f"({arm.draft.algorithm}) ends itself at its first idle moment (memory leak detected), and what one "
                f"arm runs with all run with",
            )  # fmt: skip
            return


def _log_lines(server: Server, arms: tuple[Arm, ...]) -> Found:
    for arm, path, name in _flags(server, arms):
        if name == "--log-level":
            yield arm, path, "--log-level must be left out: the lines that tell the acceptance length are of level info"


def _key_variable(server: Server, _: tuple[Arm, ...]) -> Found:
    for i, variable in enumerate(server.engine.env):
        if variable["name"] == API_KEY:
            yield None, f"engine.env[{i}].name", f"{API_KEY} is Paceline's; write apiKeySecretRef"


RULES = (
    Rule(id="owned-flag", why="two sources for one argument", broken=_owned),
    Rule(id="known-flag", why="argparse exits with 2 (SA:611-1800)", broken=_unknown),
    Rule(id="known-value", why="argparse exits with 2, for attention backends of GPUs too", broken=_misvalued),
    Rule(id="whole-flag", why="argparse takes a beginning for the flag; we would not find it",
         broken=_abbreviated),
    Rule(id="one-value", why="the last of two wins, in silence", broken=_twice),
    Rule(id="no-variables", why="the kubelet fills them in where a server is served, nobody where it is measured",
         broken=_filled_in),
    Rule(id="equal-arms", why="nothing but speculation may differ", broken=_differs),
    Rule(id="kv-cache-dtype", why="fp8 parses and is refused after loading (model_runner_kv_cache_mixin.py:449)",
         broken=_kv_cache),
    Rule(id="device-indexes", why="a base above 0 switches the compile cache off (managers/scheduler.py:580)",
         broken=_devices),
    Rule(id="every-device", why="the mesh is made of all visible devices (utils/mesh_utils.py:15)",
         broken=_every_device),
    Rule(id="two-devices-a-chip", why="a tpu7x-standard-4t node has 4 chips and 8 devices", broken=_two_devices),
    Rule(id="overlap", why="ValueError: NEXTN, DFLASH, and EAGLE3 with the backend fa overlap, nothing else (SA:1865)",
         broken=_overlap),
    Rule(id="dflash-grammar", why="ValueError: DFLASH does not support constrained decoding (SA:1931)",
         broken=_grammar),
    Rule(id="dflash-lora", why="ValueError: DFLASH does not support LoRA (SA:1929)", broken=_lora),
    Rule(id="recurrent-buffer", why="ValueError: --enable-recurrent-extra-buffer without speculation alone (SA:427)",
         broken=_recurrent),
    Rule(id="page-size", why="at page size 1 a finished request keeps its last token (mem_cache/radix_cache.py:311), "
         "and an idle scheduler ends itself for that (managers/scheduler.py:1699)", broken=_pages),
    Rule(id="log-lines", why="acceptance is in no page, only in the log (managers/scheduler_metrics_mixin.py:125)",
         broken=_log_lines),
    Rule(id="key-variable", why="the command would carry it in place of the key", broken=_key_variable),
)  # fmt: skip


def _overlaps(server: Server, algorithm: str) -> bool:
    backend = flag_value(server.engine.args, "--attention-backend") or "fa"
    version = release(server.engine.version)
    eagle3 = backend == "fa" and (version is None or version >= EAGLE3_OVERLAPS)
    return {"NEXTN": True, "DFLASH": True, "EAGLE3": eagle3}.get(algorithm, False)


def _with_backend(server: Server) -> str:
    backend = flag_value(server.engine.args, "--attention-backend")
    return f" and --attention-backend {backend}" if backend not in (None, "fa") else ""


def _first(arms: tuple[Arm, ...], algorithm: str) -> str | None:
    return next((arm.name for arm in arms if arm.draft and arm.draft.algorithm == algorithm), None)


def _arguments(server: Server | None, arms: tuple[Arm, ...]) -> Found:
    for i, argument in enumerate(server.engine.args if server else ()):
        yield None, f"engine.args[{i}]", argument
    for arm in arms:
        for i, argument in enumerate(arm.args):
            yield arm.name, f"args[{i}]", argument


def _flags(server: Server | None, arms: tuple[Arm, ...]) -> Found:
    """Names of the flags, values left out."""
    for arm, path, argument in _arguments(server, arms):
        if argument.startswith("--"):
            yield arm, path, flag_name(argument)


def _values(server: Server, arms: tuple[Arm, ...]) -> Iterator[tuple[str | None, str, str, str | None]]:
    """Every flag with the word that argparse would take for its value; a switch has one only after "="."""
    for arm, args, at in (
        (None, server.engine.args, "engine.args"),
        *((arm.name, arm.args, "args") for arm in arms),
    ):
        for i, argument in enumerate(args):
            name, equals, value = argument.partition("=")
            if name.startswith("--"):
                switch = _listed().get(name, {}).get("kind") == "switch"
                following = next(iter(args[i + 1 : i + 2]), None) if not switch else None
                after = following if following and not following.startswith("--") else None
                yield arm, f"{at}[{i}]", name, value if equals else after


def _place(server: Server, flag: str) -> str | None:
    return next((path for _, path, name in _flags(server, ()) if name == flag), None)


def _given(args: tuple[str, ...], flag: str) -> bool:
    return flag in map(flag_name, args)


def _owner(name: str) -> str | None:
    """The owned flag that this is, or that argparse would take it for."""
    if name.startswith(OWNED_PREFIX):
        return OWNED_PREFIX
    if name in OWNED or name in _listed():
        return name if name in OWNED else None
    return next((flag for flag in (*OWNED, OWNED_PREFIX) if flag.startswith(name)), None)


def _known(version: str) -> bool:
    """Whether it has no flag that we have not heard of; a name that is no version may have any."""
    asked, listed = release(version), release(LISTED)
    return asked is not None and listed is not None and asked <= listed


@cache
def _listed() -> Mapping[str, Mapping[str, Any]]:
    """Every name of a flag → what the list says of it."""
    path = files("paceline.engines") / "data" / f"sglang-jax-{LISTED}.json"
    flags: list[Mapping[str, Any]] = json.loads(path.read_text())["flags"]
    return {name: flag for flag in flags for name in flag["names"]}
