"""What a real engine's models need beside them to be measured with traffic of one's own: an adapter and prompts.

All lies in one folder, as on a claim: `target`, heads, `big`, which says what `target` says in four times as many
layers, `sql` (a LoRA adapter by seed) and `prompts`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline_emulator.hub import weights

QUESTIONS = (
    "What is a queue?", "Why is the sky blue?", "Name three rivers.", "How do I sort a list?", "What is an ox?",
    "Say it in one word.", "Who wrote this?", "Count to five.", "What is two and two?", "Where is the sea?",
    "What does it cost?", "How long is a day?", "Which way is north?", "What is rain?", "Is it late?", "What is new?",
)  # fmt: skip
FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "bug",
        "schema": {
            "type": "object",
            "properties": {"kind": {"enum": ["slow", "wrong"]}, "sure": {"type": "boolean"}},
            "required": ["kind", "sure"],
            "additionalProperties": False,
        },
    },
}
"""Closed: a model that was not trained would write a string of any length to the end of its tokens."""
TOOL = {
    "type": "function",
    "function": {
        "name": "measure",
        "description": "Measures something.",
        "parameters": {
            "type": "object",
            "properties": {"unit": {"enum": ["kg", "m"]}},
            "required": ["unit"],
            "additionalProperties": False,
        },
    },
}
BIGGER = 4
"""Times as many layers."""
RANK, SCALE = 8, 64
"""Of the adapter. Its noise is small: at a scale of 1 the answers would stay as they are."""
Entry = Mapping[str, Any]


def staged(models: Path, directory: Path) -> Path:
    """A folder with links to the models of `models`, prompts and, of a Llama, an adapter."""
    folder = directory / "models"
    (folder / "prompts").mkdir(parents=True)
    for model in models.iterdir():
        (folder / model.name).symlink_to(model.resolve())
    for name, entries in PROMPTS.items():
        lines = (json.dumps(entry) + "\n" for entry in entries)
        (folder / "prompts" / f"{name}.jsonl").write_text("".join(lines))
    _big(models / "target", folder / "big")
    _adapter(json.loads((models / "target" / "config.json").read_text()), folder / "sql")
    return folder


def _big(target: Path, folder: Path) -> None:
    """The target with layers behind its own that add nothing: what is added to the stream is multiplied by zero."""
    folder.mkdir()
    for file in target.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            (folder / file.name).symlink_to(file.resolve())
    config = json.loads((target / "config.json").read_text())
    layers = config["num_hidden_layers"]
    tensors = _read((target / "model.safetensors").read_bytes())
    last = {name: tensor for name, tensor in tensors.items() if name.startswith(f"model.layers.{layers - 1}.")}
    for layer in range(layers, layers * BIGGER):
        for name, tensor in last.items():
            adds = name.endswith(("o_proj.weight", "down_proj.weight"))
            empty = weights.Tensor(tensor.dtype, tensor.shape, bytes(len(tensor.data)))
            tensors[name.replace(f".{layers - 1}.", f".{layer}.")] = empty if adds else tensor
    (folder / "model.safetensors").write_bytes(weights.safetensors(tensors))
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers * BIGGER}))


def _read(file: bytes) -> dict[str, weights.Tensor]:
    header = int.from_bytes(file[:8], "little")
    said: dict[str, Any] = json.loads(file[8 : 8 + header])
    found = {}
    for name, one in said.items():
        if name != "__metadata__":
            start, end = (8 + header + offset for offset in one["data_offsets"])
            found[name] = weights.Tensor(one["dtype"], tuple(one["shape"]), file[start:end])
    return found


def _adapter(target: Mapping[str, Any], folder: Path) -> None:
    """In PEFT's format, on two projections of every layer."""
    hidden, layers = target["hidden_size"], target["num_hidden_layers"]
    wide = {"q_proj": target["num_attention_heads"], "v_proj": target["num_key_value_heads"]}
    tensors = {}
    for layer in range(layers):
        for name, heads in wide.items():
            place = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            for part, shape in (("A", (RANK, hidden)), ("B", (heads * target["head_dim"], RANK))):
                tensors[f"{place}.lora_{part}.weight"] = weights.noise(f"{place}{part}", *shape)
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(weights.safetensors(tensors))
    settings = {"r": RANK, "lora_alpha": RANK * SCALE, "target_modules": sorted(wide), "bias": "none"}
    said = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "target", **settings}
    (folder / "adapter_config.json").write_text(json.dumps(said))


def _said(role: str, content: str) -> Entry:
    return {"role": role, "content": content}


def _chats() -> Iterator[Entry]:
    """Three turns under a system prompt; the last answer is what is generated."""
    for number, text in enumerate(QUESTIONS):
        before, first = QUESTIONS[number - 1], QUESTIONS[number - 2]
        yield {"messages": [
            _said("system", "You are brief."),
            _said("user", first), _said("assistant", "I do not know."),
            _said("user", before), _said("assistant", "It depends."),
            _said("user", text), _said("assistant", "Left out."),
        ]}  # fmt: skip


def _with_tools() -> Iterator[Entry]:
    """By turns: the model may call, it has to, and it is given what a call came to."""
    for number, text in enumerate(QUESTIONS):
        question = _said("user", text)
        call = {"id": "call-1", "type": "function", "function": {"name": "measure", "arguments": '{"unit": "kg"}'}}
        called = [{"role": "assistant", "content": "", "tool_calls": [call]},
                  {"role": "tool", "tool_call_id": "call-1", "content": "7 kg"}]  # fmt: skip
        choice = {"tool_choice": "required"} if number % 3 == 1 else {}
        yield {"messages": [question, *(called if number % 3 == 2 else ())], "tools": [TOOL], **choice}


PROMPTS: Mapping[str, Sequence[Entry]] = {
    "short": [{"messages": [_said("user", text)]} for text in QUESTIONS],
    "chats": list(_chats()),
    "tools": list(_with_tools()),
}
