"""models.py SEEDS OUT: a target of six billion parameters and two drafts that it accepts, made where they are served.

SEEDS has `small`, a trained Llama of 4 layers and 256 columns, and `eagle3`, an EAGLE3 head for it. OUT gets

* `big`: small's layers among blank ones, widened by zeros. It computes what small computes. A blank layer does all of
  its work, but its last projections (o_proj, down_proj) are zero, so it adds nothing. The width grows by a power of
  four: the mean square of each RMSNorm is then smaller by that power, which weights of half as much a step make up for
  exactly, epsilon included;
* `eagle3`: the head at big's width, reading the same hidden states at their places in big;
* `small`: a copy, the draft of STANDALONE.

So acceptance is real: that of small, and of its head. Needs torch and safetensors.
"""

import argparse
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

SHARD_BYTES = 3 << 30
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")

Config = dict[str, Any]
Weights = dict[str, torch.Tensor]


def big(config: Config, weights: Weights, sizes: argparse.Namespace) -> tuple[Config, list[int]]:
    """Its configuration, and where small's layers are in it."""
    width, inner, layers, head = sizes.hidden, sizes.inner, sizes.layers, config["head_dim"]
    heads = width // head
    shared = heads * config["num_key_value_heads"] // config["num_attention_heads"]
    count = config["num_hidden_layers"]
    # Never the last layer: EAGLE3 cannot read its output.
    at = [round(number * (layers - 2) / (count - 1)) for number in range(count)]
    if len(set(at)) < count:
        raise SystemExit(f"--layers {layers}: must be at least {count + 1}")
    made = {
        **config,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "rms_norm_eps": config["rms_norm_eps"] * _scale(config, width) ** 2,
    }
    shapes = {
        "self_attn.q_proj": (heads * head, width),
        "self_attn.k_proj": (shared * head, width),
        "self_attn.v_proj": (shared * head, width),
        "self_attn.o_proj": (width, heads * head),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    save(sizes.out / "big", _of_big(config, weights, sizes, at, shapes), made, sizes.seeds / "small")
    return made, at


def _of_big(
    config: Config, weights: Weights, sizes: argparse.Namespace, at: list[int], shapes: dict[str, tuple[int, int]]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Weight by weight: they do not fit twice into every memory."""
    scale = _scale(config, sizes.hidden)
    dice = torch.Generator(device=sizes.device).manual_seed(7)
    for layer in range(sizes.layers):
        own = f"model.layers.{at.index(layer)}" if layer in at else ""
        for name, shape in shapes.items():
            if own:
                made = widened(weights[f"{own}.{name}.weight"], *shape)
            elif name.endswith(("o_proj", "down_proj")):
                made = torch.zeros(shape)
            else:
                made = torch.randn(shape, generator=dice, device=sizes.device) * 0.02
            yield f"model.layers.{layer}.{name}.weight", made
        for name in ("input_layernorm", "post_attention_layernorm"):
            norm = widened(weights[f"{own}.{name}.weight"].float() * scale, sizes.hidden) if own else None
            yield f"model.layers.{layer}.{name}.weight", torch.ones(sizes.hidden) if norm is None else norm
    yield "model.norm.weight", widened(weights["model.norm.weight"].float() * scale, sizes.hidden)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        yield name, widened(weights[name], weights[name].shape[0], sizes.hidden)


def eagle3(config: Config, weights: Weights, target: Config, at: list[int], sizes: argparse.Namespace) -> None:
    width, scale = sizes.hidden, _scale(config, sizes.hidden)

    def wider(name: str, weight: torch.Tensor) -> torch.Tensor:
        if name in ("d2t", "t2d"):
            return weight
        if weight.dim() == 1:  # norms
            return widened(weight.float() * scale, width).bfloat16()
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            return widened(weight, width, weight.shape[1]).bfloat16()
        rows = width if name == "fc.weight" else weight.shape[0]
        parts = [widened(part, rows, width) for part in weight.split(config["hidden_size"], dim=1)]
        return torch.cat(parts, dim=1).bfloat16()

    # The output of small's first, middle and last layer: after its k-th is after big's at[k - 1].
    reads = [at[0], at[len(at) // 2 - 1], at[-1]]
    made = {
        **config,
        "hidden_size": width,
        "rms_norm_eps": config["rms_norm_eps"] * scale**2,
        "max_position_embeddings": target["max_position_embeddings"],
        "eagle_config": {**config["eagle_config"], "eagle_aux_hidden_state_layer_ids": reads},
    }
    every = ((name, wider(name, weight)) for name, weight in weights.items())
    save(sizes.out / "eagle3", every, made, sizes.seeds / "eagle3", as_it_is=True)


def widened(weight: torch.Tensor, *shape: int) -> torch.Tensor:
    """Filled up by zeros. Heads stay whole: the first ones are small's."""
    made = torch.zeros(*shape)
    made[tuple(slice(0, size) for size in weight.shape)] = weight.float()
    return made


def _scale(config: Config, width: int) -> float:
    scale = math.sqrt(config["hidden_size"] / width)
    if not math.log2(1 / scale).is_integer():
        raise SystemExit(f"--hidden {width}: must be {config['hidden_size']} times a power of four")
    return scale


def save(
    into: Path, weights: Iterator[tuple[str, torch.Tensor]], config: Config, seed: Path, *, as_it_is: bool = False
) -> None:
    """In files of about 3 GiB with their index, in bfloat16 unless they have their types already."""
    into.mkdir(parents=True, exist_ok=True)
    where: dict[str, str] = {}
    held: Weights = {}
    total = 0

    def write() -> None:
        file = f"model-{len(set(where.values())):05}.safetensors"
        save_file(held, into / file, metadata={"format": "pt"})
        where.update(dict.fromkeys(held, file))
        held.clear()

    for name, weight in weights:
        held[name] = (weight if as_it_is else weight.bfloat16()).contiguous().cpu()
        total += held[name].nbytes
        if sum(one.nbytes for one in held.values()) > SHARD_BYTES:
            write()
    if held:
        write()
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (into / "model.safetensors.index.json").write_text(json.dumps(index))
    (into / "config.json").write_text(json.dumps(config, indent=1))
    for name in TOKENIZER:
        shutil.copy(seed / name, into)
    print(f"{into.name}: {total / 1e9:.2f} GB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--inner", type=int, default=11008)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--device", default="cuda", help="where tensors are made")
    sizes = parser.parse_args()
    torch.set_default_device(sizes.device)
    read = {
        name: (
            json.loads((sizes.seeds / name / "config.json").read_text()),
            load_file(sizes.seeds / name / "model.safetensors", device=sizes.device),
        )
        for name in ("small", "eagle3")
    }
    target, at = big(*read["small"], sizes)
    eagle3(*read["eagle3"], target, at, sizes)
    shutil.copytree(sizes.seeds / "small", sizes.out / "small", dirs_exist_ok=True)


main()
