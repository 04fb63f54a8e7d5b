"""resolved.py ROOT GPU < asked.json: SGLang's own resolution of arguments, run from an unpacked wheel without a GPU.

Each of `asked` is {config, head, args}: configurations of a target and of its head, and the fields of ServerArgs that
somebody gives. The answer has {resolved, where} of each, or {error}: `where` is the line that set a field last. Nothing
of the resolution is replaced but what it asks of the machine (`MACHINE`) and of the hub.
"""

import contextlib
import dataclasses
import importlib
import io
import json
import logging
import os
import sys
import types
from collections.abc import Mapping
from functools import partial
from typing import Any

import stubs

GPUS = {
    "H200": (143771, (9, 0)),
    "H100": (81559, (9, 0)),
    "A100": (81920, (8, 0)),
    "B200": (183359, (10, 0)),
}
"""MiB as nvidia-smi tells them, and compute capability."""
OTHERS = ("is_hip", "is_npu", "is_xpu", "is_hpu", "is_musa", "is_mps", "is_cpu", "cpu_has_amx_support")
HUB = (
    "sglang.srt.utils.hf_transformers_utils",
    "sglang.srt.utils.hf_transformers",
    "sglang.srt.utils.hf_transformers.config",
    "sglang.srt.arg_groups.muse_spark_hook",
    "sglang.srt.arg_groups.memory_hook",
    "sglang.srt.arg_groups.speculative_hook",
    "sglang.srt.arg_groups.overrides",
    "sglang.srt.arg_groups.pipeline",
    "sglang.srt.runtime_context",
)
"""Modules that read a model's configuration, in one release or another."""
BEHIND = frozenset({
    "overrides.py", "resolved.py", "stubs.py", "dataclasses.py", "<string>", "arg_utils.py", "resolution_hooks.py",
})  # fmt: skip
"""Files that set a field on another's behalf."""


def machine(gpu: str) -> dict[str, Any]:
    """What SGLang asks of a machine → its answer."""
    memory, capability = GPUS[gpu]
    hopper, blackwell = capability == (9, 0), capability[0] == 10
    return {
        **dict.fromkeys(OTHERS, False),
        "is_cuda": True,
        "is_cuda_alike": True,
        "is_hopper_with_cuda_12_3": hopper,
        "is_sm90_supported": hopper,
        "is_sm100_supported": blackwell,
        "is_sm100_or_sm110_supported": blackwell,
        "is_blackwell_supported": blackwell,
        "is_blackwell": blackwell,
        "is_sm110_supported": False,
        "is_sm120_supported": False,
        "is_flashinfer_available": True,
        "is_triton_kernels_available": True,
        "get_device": "cuda",
        "get_device_sm": 10 * capability[0] + capability[1],
        "get_device_capability": capability,
        "get_device_name": f"NVIDIA {gpu}",
        "get_cuda_version": (12, 9),
        "get_nvgpu_memory_capacity": memory,
        "get_device_memory_capacity": memory,
    }


class Config:
    """A config.json as transformers would show it."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        for key, value in said.items():
            nested = isinstance(value, dict) and key.endswith("_config") and key != "quantization_config"
            setattr(self, key, Config(value) if nested else value)

    def get_text_config(self) -> "Config":
        return getattr(self, "text_config", self)

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)


class Model:
    """As much of SGLang's ModelConfig as the resolution reads; what is not here is None, or False of `is_…`."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        arch = importlib.import_module("sglang.srt.configs.model_config").AttentionArch
        config = Config(said)
        text = config.get_text_config()
        self.hf_config, self.hf_text_config = config, text
        self.is_generation = True
        self.is_multimodal = hasattr(config, "text_config")
        self.context_len = text.max_position_embeddings
        self.num_hidden_layers = text.num_hidden_layers
        self.num_attention_heads = text.num_attention_heads
        self.num_key_value_heads = text.get("num_key_value_heads")
        self.hidden_size, self.vocab_size = text.hidden_size, text.vocab_size
        self.head_dim = self.v_head_dim = text.get("head_dim") or text.hidden_size // text.num_attention_heads
        self.attention_arch = arch.MLA if hasattr(text, "kv_lora_rank") else arch.MHA
        self.kv_lora_rank, self.qk_rope_head_dim = text.get("kv_lora_rank"), text.get("qk_rope_head_dim")
        self.quantization = (said.get("quantization_config") or {}).get("quant_method")
        self.dtype = types.SimpleNamespace(itemsize=2)

    def get_num_kv_heads(self, tensor_parallel_size: int = 1) -> int:
        return max(1, (self.num_key_value_heads or self.num_attention_heads) // tensor_parallel_size)

    def get_total_num_kv_heads(self) -> int:
        return int(self.num_key_value_heads or self.num_attention_heads)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return False if name.startswith("is_") else None


class Declared(list[Any]):
    """What newer releases keep beside the fields: (who, {field: value})."""

    where: dict[str, str]

    def append(self, said: Any) -> None:
        self.where |= dict.fromkeys(said[1], caller())
        super().append(said)


def caller() -> str:
    """Who set a field: its file below srt/ and the line."""
    frame: Any = sys._getframe(2)
    while frame and os.path.basename(frame.f_code.co_filename) in BEHIND:  # noqa: PTH119
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/srt/')[2]}:{frame.f_lineno}" if frame else ""


def _always(value: Any, *_: Any, **__: Any) -> Any:
    return value


def first(*names: str) -> Any:
    """Of modules: before 0.5.3 the second was no package."""
    for name in names:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise ImportError(names[0])


def prepare(root: str, gpu: str) -> Any:
    """The class ServerArgs on such a machine."""
    stubs.install(root)
    answers = machine(gpu)
    torch: Any = importlib.import_module("torch")
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_capability = lambda *_: answers["get_device_capability"]
    torch.cuda.device_count = lambda: 8
    torch.version.cuda, torch.version.hip = "12.9", None
    common = first("sglang.srt.utils.common", "sglang.srt.utils")
    replaced = {name: partial(_always, value) for name, value in answers.items()}
    for name, answer in replaced.items():
        if hasattr(common, name):
            setattr(common, name, answer)
    made = importlib.import_module("sglang.srt.server_args").ServerArgs
    for module in (found for name, found in list(sys.modules.items()) if name.startswith("sglang.srt.")):
        for name in replaced.keys() & vars(module).keys():
            setattr(module, name, replaced[name])
    return made


def models_are(made: Any, one: Mapping[str, Any]) -> None:
    """Both models' configurations, wherever they are read."""

    def config(path: Any, *_: Any, **__: Any) -> Config:
        return Config(one["head"] if "head" in str(path) else one["config"])

    model = Model(one["config"])
    importlib.import_module("sglang.srt.configs.model_config").ModelConfig.from_server_args = lambda *_, **__: model
    for name in HUB:
        with contextlib.suppress(ImportError):
            importlib.import_module(name).get_config = config
    vars(sys.modules["sglang.srt.server_args"]).update(get_config=config)
    if hasattr(made, "get_model_config"):

        def get_model_config(arguments: Any) -> Model:
            object.__setattr__(arguments, "model_config", model)
            return model

        made.get_model_config = get_model_config


def resolve(made: Any, one: Mapping[str, Any]) -> dict[str, Any]:
    models_are(made, one)
    where: dict[str, str] = {}
    plainly = made.__setattr__

    def set_field(arguments: Any, name: str, value: Any) -> None:
        if name == "_resolved_overrides":
            value = Declared(value)
            value.where = where
        elif by := caller():
            where[name] = by
        plainly(arguments, name, value)

    made.__setattr__ = set_field
    arguments = made(model_path="/models/target", **one["args"])
    if hasattr(arguments, "resolve_once"):
        arguments.resolve_once()
        return {"resolved": arguments.resolved_dict(), "where": where}
    said = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(made)}
    for _, declared in getattr(arguments, "_resolved_overrides", ()):
        said |= declared
    return {"resolved": said, "where": where}


def answer(made: Any, one: Mapping[str, Any]) -> dict[str, Any]:
    """In a fork: resolution changes the environment and may be done once a process."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.close(read)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                said = resolve(made, one)
            said["imported"] = [name for name in sys.modules if name.startswith("sglang.")]
            text = json.dumps(said, default=lambda value: getattr(value, "__dict__", str(value)))
        except BaseException as error:
            text = json.dumps({"error": f"{type(error).__name__}: {error}"})
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(text)
    for name in found.pop("imported", ()):  # so that the next fork need not
        importlib.import_module(name)
    return found


def main(root: str, gpu: str) -> None:
    os.environ["SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"] = "1"
    logging.basicConfig(stream=io.StringIO())
    asked = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        made = prepare(root, gpu)
    json.dump([answer(made, one) for one in asked], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
