"""models.py OUT: a target of eight billion parameters and two drafts for it, made by seed where they are served.

`small` is a Llama of four layers with random weights. `big`, the target, is small's layers among blank ones, widened by
zeros: it computes what small computes, at a thousand times the cost. A blank layer does all of its work, but its last
projections (o_proj, down_proj) are zero, so it adds nothing. The width grows by a power of four: the mean square of
each RMSNorm is then smaller by that power, which weights of half as much a step make up for exactly, epsilon included.
`spoiled` is small with noise on its weights. So small drafts what big says, but for ties in bfloat16, and spoiled
seldom does: acceptance is real, and a text is the gibberish of a random model, printable and without an end.

Needs torch and safetensors, which come with SGLang, and Paceline's emulator for the tokenizer. Written to OUT/big,
OUT/small and OUT/spoiled; 16 GB at the defaults.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from paceline_emulator.hub import tokenizer

HEAD = 64
SMALL_HIDDEN, SMALL_INNER, SMALL_LAYERS = 256, 1024, 4
EPSILON = 1e-5
SHARD_BYTES = 3 << 30
SPREAD = 4.0
"""Standard deviation of the logits: the likeliest token is then about 1 nat ahead."""
CONTEXT = 4096

Weights = Mapping[str, torch.Tensor]


def small(seed: int) -> dict[str, torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)

    def normal(rows: int, columns: int, deviation: float) -> torch.Tensor:
        return torch.randn(rows, columns, generator=dice) * deviation

    vocabulary = words()
    made = {"model.embed_tokens.weight": normal(len(vocabulary), SMALL_HIDDEN, 1.0)}
    for layer in range(SMALL_LAYERS):
        for name, (rows, columns) in shapes(SMALL_HIDDEN, SMALL_INNER).items():
            made[f"model.layers.{layer}.{name}.weight"] = normal(rows, columns, 1 / math.sqrt(columns))
        for name in ("input_layernorm", "post_attention_layernorm"):
            made[f"model.layers.{layer}.{name}.weight"] = torch.ones(SMALL_HIDDEN)
    made["model.norm.weight"] = torch.ones(SMALL_HIDDEN)
    printable = torch.tensor([[float(is_printable(word))] for word in vocabulary])
    made["lm_head.weight"] = normal(len(vocabulary), SMALL_HIDDEN, SPREAD / math.sqrt(SMALL_HIDDEN)) * printable
    return made


def shapes(hidden: int, inner: int) -> dict[str, tuple[int, int]]:
    return {
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (hidden // 2, hidden),
        "self_attn.v_proj": (hidden // 2, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }


def words() -> list[str]:
    """The tokenizer's, in the order of their numbers."""
    known = json.loads(tokenizer.files()["tokenizer.json"])
    every = {**known["model"]["vocab"], **{one["content"]: one["id"] for one in known["added_tokens"]}}
    return sorted(every, key=lambda word: int(every[word]))


def is_printable(word: str) -> bool:
    """All others get a logit of 0, which never is the largest: half a character would be held back, and an end end."""
    return word not in tokenizer.SPECIAL and all(33 <= ord(letter) < 127 or letter == "Ġ" for letter in word)


def spoiled(weights: Weights, noise: float, seed: int) -> dict[str, torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    return {
        name: weight + torch.randn(weight.shape, generator=dice) * weight.std() * noise if weight.dim() == 2 else weight
        for name, weight in weights.items()
    }


def big(weights: Weights, *, hidden: int, inner: int, layers: int, device: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Weight by weight: they do not fit twice into every memory."""
    scale = math.sqrt(SMALL_HIDDEN / hidden)
    if not math.log2(1 / scale).is_integer():
        raise SystemExit(f"--hidden {hidden}: must be {SMALL_HIDDEN} times a power of four")
    dice = torch.Generator(device=device).manual_seed(7)
    at = [round(number * (layers - 1) / (SMALL_LAYERS - 1)) for number in range(SMALL_LAYERS)]
    for layer in range(layers):
        ours = f"model.layers.{at.index(layer)}" if layer in at else None
        for name, shape in shapes(hidden, inner).items():
            if ours:
                made = widened(weights[f"{ours}.{name}.weight"], *shape)
            elif name.endswith(("o_proj", "down_proj")):
                made = torch.zeros(shape)
            else:
                made = torch.randn(shape, generator=dice, device=device) * 0.02
            yield f"model.layers.{layer}.{name}.weight", made
        for name in ("input_layernorm", "post_attention_layernorm"):
            norm = widened(weights[f"{ours}.{name}.weight"] * scale, hidden) if ours else torch.ones(hidden)
            yield f"model.layers.{layer}.{name}.weight", norm
    yield "model.norm.weight", widened(weights["model.norm.weight"] * scale, hidden)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        yield name, widened(weights[name], weights[name].shape[0], hidden)


def widened(weight: torch.Tensor, *shape: int) -> torch.Tensor:
    """Filled up by zeros. Heads stay whole: the first ones are small's."""
    made = torch.zeros(*shape)
    made[tuple(slice(0, size) for size in weight.shape)] = weight
    return made


def configuration(hidden: int, inner: int, layers: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // HEAD,
        "num_key_value_heads": hidden // HEAD // 2,
        "head_dim": HEAD,
        "vocab_size": len(words()),
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPSILON * SMALL_HIDDEN / hidden,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": words().index(tokenizer.START),
        "eos_token_id": words().index(tokenizer.END),
    }


def save(directory: Path, weights: Iterator[tuple[str, torch.Tensor]], config: Mapping[str, Any], dtype: str) -> None:
    """In files of at most 3 GiB and their index; then what a hub would have beside them."""
    directory.mkdir(parents=True, exist_ok=True)
    where: dict[str, str] = {}
    held: dict[str, torch.Tensor] = {}
    size = total = 0

    def write() -> None:
        file = f"model-{len(set(where.values())):05}.safetensors"
        save_file(held, directory / file, metadata={"format": "pt"})
        where.update(dict.fromkeys(held, file))
        held.clear()

    for name, weight in weights:
        held[name] = weight.to(getattr(torch, dtype)).contiguous().cpu()
        size += held[name].nbytes
        total += held[name].nbytes
        if size > SHARD_BYTES:
            write()
            size = 0
    if held:
        write()
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    (directory / "config.json").write_text(json.dumps({**config, "torch_dtype": dtype}, indent=1))
    for name, content in tokenizer.files().items():
        (directory / name).write_bytes(content)
    print(f"{directory}: {total / 2e9 if dtype == 'bfloat16' else total / 4e9:.2f} B parameters, {total / 1e9:.1f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--inner", type=int, default=16384)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--noise", type=float, default=0.5, help="on the weights of `spoiled`, of their deviation")
    parser.add_argument("--device", default="cuda", help="where random numbers are drawn")
    parser.add_argument("--dtype", default="bfloat16")
    args = parser.parse_args()
    weights, own = small(seed=1), configuration(SMALL_HIDDEN, SMALL_INNER, SMALL_LAYERS)
    sizes = {"hidden": args.hidden, "inner": args.inner, "layers": args.layers}
    models: dict[str, tuple[Callable[[], Iterator[tuple[str, torch.Tensor]]], Mapping[str, Any]]] = {
        "small": (lambda: iter(weights.items()), own),
        "spoiled": (lambda: iter(spoiled(weights, args.noise, seed=2).items()), own),
        "big": (lambda: big(weights, device=args.device, **sizes), configuration(**sizes)),
    }
    for name, (made, config) in models.items():
        save(args.out / name, made(), config, args.dtype)


if __name__ == "__main__":
    main()
