"""make_traffic.py DIR: prompts in the formats that people have, and a LoRA adapter, for the models of dev/test-sglang.

From the functions that DIR/trained/corpus holds back, into DIR/traffic: chats of three turns with a system prompt,
calls of a tool, a parquet file, twenty trajectories in two formats, and a log with the times at which its requests
came. The adapter is for DIR/trained/big, made by seed. The same bytes every time, but for the parquet file, whose
writer may change.
"""

import hashlib
import itertools
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy

SEED = 13
SYSTEM = {"role": "system", "content": "Complete the Python function. Keep to its name and its arguments."}
FIND = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Find a function of the standard library.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}
RANK, ALPHA = 4, 8
ADAPTED = ("q_proj", "k_proj", "v_proj")
STRENGTH = 0.2
"""Standard deviation of lora_B: answers of the adapter are others, and still Python."""


def main(directory: Path) -> None:
    held = (directory / "trained" / "corpus" / "held.jsonl").read_text().splitlines()
    questions = [json.loads(line)["messages"][0]["content"] for line in held]
    traffic = directory / "traffic"
    (traffic / "adapter").mkdir(parents=True, exist_ok=True)
    write_lines(traffic / "chats.jsonl", map(chat, questions[::3], questions[1::3], questions[2::3]))
    write_lines(traffic / "tools.jsonl", map(call, questions))
    write_lines(traffic / "log.jsonl", log(questions))
    again = itertools.cycle(questions)
    fours = [list(itertools.islice(again, 4)) for _ in range(20)]
    write_lines(traffic / "sessions.jsonl", map(session, fours))
    write_lines(traffic / "trace.json", [{"metadata": {}, "conversations": list(map(trace, fours))}])
    write_table(traffic / "functions.parquet", questions)
    write_adapter(traffic / "adapter", json.loads((directory / "trained" / "big" / "config.json").read_text()))


def chat(first: str, second: str, third: str) -> Mapping[str, Any]:
    """Three turns; the last answer is what is generated."""
    turns = [{"role": "user", "content": question} for question in (first, second, third)]
    answer = {"role": "assistant", "content": "    return None"}
    return {"messages": [SYSTEM, turns[0], answer, turns[1], answer, turns[2]]}


def call(question: str) -> Mapping[str, Any]:
    """What a tool has found is asked about."""
    task = {"role": "user", "content": f"Complete {_name(question)}."}
    return {"messages": [task, *_found(question)], "tools": [FIND]}


def _name(question: str) -> str:
    return question.partition("(")[0].removeprefix("def ")


def _found(question: str) -> list[Mapping[str, Any]]:
    wanted = {"name": FIND["function"]["name"], "arguments": json.dumps({"name": _name(question)})}
    called = [{"id": "call_1", "type": "function", "function": wanted}]
    return [
        {"role": "assistant", "content": None, "tool_calls": called},
        {"role": "tool", "tool_call_id": "call_1", "content": question},
    ]


def session(questions: Sequence[str]) -> Mapping[str, Any]:
    """A row of thoughtworks/agentic-coding-trajectories: one tool after another is called, five answers."""
    task = {"role": "user", "content": f"Complete {_name(questions[0])}."}
    calls = itertools.chain.from_iterable(map(_found, questions))
    messages = [SYSTEM, task, *calls, {"role": "assistant", "content": "    return None"}]
    return {"session_id": _name(questions[0]), "messages_json": json.dumps(messages), "tools": [FIND]}


def trace(questions: Sequence[str]) -> list[Mapping[str, Any]]:
    """A conversation of SGLang's `agentic_trace`: the assistant's messages are left out."""
    asked = [[{"role": "user", "content": question}] for question in questions]
    return [{"messages": turn, "prompt_tokens": 0} for turn in ([SYSTEM, *asked[0]], *asked[1:])]


def log(questions: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    """Requests in bursts, some seconds apart."""
    chance, time = random.Random(SEED), datetime(2026, 11, 22, 9, tzinfo=UTC)
    for question in questions:
        time += timedelta(seconds=chance.choice((0.2, 0.2, 8.0)))
        yield {"timestamp": time.isoformat(), "messages": [{"role": "user", "content": question}]}


def write_lines(file: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def write_table(file: Path, questions: Iterable[str]) -> None:
    """A row an entry, with its messages as a list of structs, as libraries write them."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE rows (messages STRUCT(role VARCHAR, content VARCHAR)[])")
        rows = [[[{"role": "user", "content": question}]] for question in questions]
        database.executemany("INSERT INTO rows VALUES (?)", rows)
        database.execute(f"COPY rows TO '{file}' (FORMAT parquet)")


def write_adapter(folder: Path, model: Mapping[str, Any]) -> None:
    """Of PEFT's form: adapter_config.json and adapter_model.safetensors, in float32."""
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads", "v_proj": "num_key_value_heads"}
    tensors: dict[str, numpy.ndarray] = {}
    for layer in range(model["num_hidden_layers"]):
        for name in ADAPTED:
            place = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            out, width = model[heads[name]] * model["head_dim"], model["hidden_size"]
            tensors[f"{place}.lora_A.weight"] = noise(f"{place}.A", RANK, width) / width**0.5
            tensors[f"{place}.lora_B.weight"] = noise(f"{place}.B", out, RANK) * STRENGTH
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "big", "bias": "none", "r": RANK,
        "lora_alpha": ALPHA, "lora_dropout": 0.0, "target_modules": list(ADAPTED), "inference_mode": True,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "adapter_model.safetensors").write_bytes(safetensors(tensors))


def noise(seed: str, *shape: int) -> numpy.ndarray:
    digest = hashlib.sha256(f"{SEED}.{seed}".encode()).digest()
    return numpy.random.default_rng(int.from_bytes(digest[:8])).standard_normal(shape).astype(numpy.float32)


def safetensors(tensors: Mapping[str, numpy.ndarray]) -> bytes:
    """8 bytes of the header's length, the header as JSON, the data."""
    header, data = dict[str, Any](), b""
    for name, tensor in tensors.items():
        written = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(written)]}
        data += written
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


if __name__ == "__main__":
    main(Path(sys.argv[1]))
