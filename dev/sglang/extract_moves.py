"""Which resolved arguments speculation moves by itself, per release of SGLang, for `add_release.py`.

Each published wheel is unpacked (nothing is installed), and its own resolution of arguments is run on machines
that are made up, without speculation and with every algorithm (`resolved.py`): what comes out otherwise was moved. Once
with all left alone, and once with what Paceline's rules ask for (`PINS`): what moves even then cannot be compared.
Writes operator/paceline/engines/sglang/data/moves.json; releases that are not named stay as they are there. Half a
minute of one core a release.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from wheels import DATA, wheel

from paceline_emulator.hub.models import generated

TO = DATA / "moves.json"
GPUS = {"A100": 1, "H100": 1, "H200": 4, "B200": 1}
"""Product → tensor parallelism."""

DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 7168,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128,
    "num_key_value_heads": 128, "vocab_size": 129280, "max_position_embeddings": 163840, "kv_lora_rank": 512,
    "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 256,
    "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16",
}  # fmt: skip
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
    "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "vocab_size": 201088, "max_position_embeddings": 131072, "num_local_experts": 128, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "mxfp4"},
}  # fmt: skip
HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 12288, "num_hidden_layers": 1, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16", "block_size": 16,
    "dflash_config": {"target_layer_ids": [1, 17, 30], "mask_token_id": 1}, "target_layer_ids": [1, 17, 30],
    "mask_token_id": 1, "markov_rank": 64,
}  # fmt: skip

HEADED = {"speculative_draft_model_path": "/models/head"}
CHAIN = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
TREE = {"speculative_num_steps": 3, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8}
ARMS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    "EAGLE": {"speculative_algorithm": "EAGLE", **HEADED, **CHAIN},
    "EAGLE3": {"speculative_algorithm": "EAGLE3", **HEADED, **CHAIN},
    "EAGLE3 tree": {"speculative_algorithm": "EAGLE3", **HEADED, **TREE},
    "EAGLE3 adaptive": {
        "speculative_algorithm": "EAGLE3", **HEADED, "speculative_adaptive": True, "speculative_eagle_topk": 1,
    },
    "STANDALONE": {"speculative_algorithm": "STANDALONE", **HEADED, **CHAIN},
    "NGRAM": {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 12},
    "DFLASH": {"speculative_algorithm": "DFLASH", **HEADED, "speculative_dflash_block_size": 16},
    "DSPARK": {"speculative_algorithm": "DSPARK", **HEADED, "speculative_dspark_block_size": 8},
}  # fmt: skip
BY_PACELINE = {
    "max_running_requests": 64,
    "random_seed": 0,
    "decode_log_interval": 10,
    "served_model_name": "target",
}
"""What every command has (engines/sglang/argv.py)."""
PINS = {"attention_backend": "triton", "mem_fraction_static": 0.85}

CHOICES = re.compile(r'"--speculative-algorithm",[^)]*?choices=\[(.*?)\]', re.DOTALL)

Answers = dict[tuple[str, str, str], dict[str, Any]]
"""GPU, target, arm → its answer."""


@cache
def targets() -> dict[str, Any]:
    published = {name: one.history[-1].files.get("config.json") for name, one in generated().items()}

    def config(name: str) -> Any:
        file = published[name]
        assert file
        return json.loads(file.content)

    return {
        "Qwen3": config("Qwen/Qwen3-8B"),
        "Qwen3-Next": config("Qwen/Qwen3-Coder-Next"),
        "DeepSeek-V3": DEEPSEEK,
        "GPT-OSS": GPT_OSS,
    }


def ask(root: Path, pins: Mapping[str, Any]) -> Answers:
    answers: Answers = {}
    for gpu, parallel in GPUS.items():
        cases = [(gpu, target, arm) for target in targets() for arm in ARMS]
        asked = [
            {
                "config": targets()[target],
                "head": HEAD,
                "args": {**BY_PACELINE, "tp_size": parallel, **pins, **ARMS[arm]},
            }
            for _, target, arm in cases
        ]
        command = [sys.executable, str(Path(__file__).with_name("resolved.py")), str(root), gpu]
        said = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True).stdout
        answers |= zip(cases, json.loads(said), strict=True)
    return answers


def flat(said: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in said.items():
        found |= flat(value, f"{at}{key}.") if isinstance(value, dict) and value else {f"{at}{key}": value}
    return found


def moved(answers: Answers, lacking: Sequence[str]) -> dict[str, Any]:
    """Field → by which arms and on which GPUs it moves, the lines that set it, and one example."""
    found: dict[str, Any] = {}
    for (gpu, target, arm), said in answers.items():
        base = answers[gpu, target, ""]
        if not arm or arm in lacking or "error" in said or "error" in base:
            continue
        mine, its = flat(said["resolved"]), flat(base["resolved"])
        for field in sorted(mine.keys() | its.keys()):
            if mine.get(field) == its.get(field) or field.startswith(("speculative_", "_")):
                continue
            top = field.split(".")[0]
            row = found.setdefault(field, {"by": {}, "on": {}, "at": [], "from": its.get(field), "to": mine.get(field)})
            _add(row["by"].setdefault(arm, []), [gpu])
            _add(row["on"].setdefault(arm, []), [target])
            _add(row["at"], filter(None, (said["where"].get(top), base["where"].get(top))))
    return {field: _short(row) for field, row in sorted(found.items())}


def _add(to: list[str], more: Iterable[str]) -> None:
    to += [one for one in dict.fromkeys(more) if one not in to]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    for key in ("from", "to"):
        text = json.dumps(row[key])
        row[key] = row[key] if len(text) < 40 else f"{text[:38]}…"
    return row


def fractions(answers: Answers, lacking: Sequence[str]) -> dict[str, dict[str, float]]:
    """mem_fraction_static of a dense target, by GPU and arm."""
    of = {(gpu, arm): one for (gpu, target, arm), one in answers.items() if target == "Qwen3" and "error" not in one}
    return {
        gpu: {
            arm or "baseline": round(of[gpu, arm]["resolved"]["mem_fraction_static"], 4)
            for arm in ARMS
            if (gpu, arm) in of and arm not in lacking
        }
        for gpu in GPUS
    }


def lacks(answers: Answers, root: Path) -> list[str]:
    """Arms that this release does not know: it says so, or its parser has no such choice."""
    words = ("unexpected keyword", "Unknown speculative", "KeyError")
    unknown = {arm for (_, _, arm), one in answers.items() if any(word in one.get("error", "") for word in words)}
    choices = CHOICES.search((root / "sglang/srt/server_args.py").read_text())
    named = {one.strip(' \n"') for one in choices[1].split(",")} if choices else set()
    unchosen = {arm for arm in ARMS if arm and named and arm.split()[0] not in named}
    return [arm for arm in ARMS if arm in unknown | unchosen]


def refused(answers: Answers, lacking: Sequence[str]) -> dict[str, str]:
    """Target and arms → the reason, of what SGLang itself refuses with all left alone; the first GPU that says so."""
    found: dict[tuple[str, str], list[str]] = {}
    for (_, target, arm), one in answers.items():
        if "error" in one and arm not in lacking:
            _add(found.setdefault((target, one["error"][:160]), []), [arm])
    return {f"{target}: {', '.join(arms)}": error for (target, error), arms in found.items()}


def _a_line_a_field(said: dict[str, Any]) -> str:
    """So that a change can be read."""

    def rows(release: dict[str, Any]) -> str:
        told = {key: release[key] for key in ("lacks", "memFractionStatic", "refuses")}
        parts = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in told.items()]
        for key in ("moves", "movesWhenPinned"):
            fields = ",\n".join(f'   "{n}": {json.dumps(v, ensure_ascii=False)}' for n, v in release[key].items())
            parts.append(f'  "{key}": {{\n{fields}\n  }}')
        return ",\n".join(parts)

    releases = ",\n".join(f' "{name}": {{\n{rows(one)}\n }}' for name, one in said["releases"].items())
    return f'{{"source": {json.dumps(said["source"])},\n"releases": {{\n{releases}\n}}}}\n'


def release(version: str, scratch: Path) -> dict[str, Any]:
    root = scratch / version
    with zipfile.ZipFile(wheel(version)) as file:
        file.extractall(root, [name for name in file.namelist() if name.endswith(".py")])
    left, pinned = ask(root, {}), ask(root, PINS)
    lacking = lacks(left, root)
    return {
        "lacks": lacking,
        "moves": moved(left, lacking),
        "movesWhenPinned": moved(pinned, lacking),
        "memFractionStatic": fractions(left, lacking),
        "refuses": refused(left, lacking),
    }


def main(every: Iterable[str], added: Iterable[str]) -> None:
    known = json.loads(TO.read_text())["releases"]
    for version in added:
        with tempfile.TemporaryDirectory() as scratch:
            known[version] = release(version, Path(scratch))
    said = {
        "source": "wheels of SGLang on PyPI, their own resolution run by dev/sglang/add_release.py",
        "releases": {name: known[name] for name in every},
    }
    TO.write_text(_a_line_a_field(said))
