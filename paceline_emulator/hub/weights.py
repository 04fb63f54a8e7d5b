"""Safetensors files made of reproducible noise."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# bfloat16 is sign, 8 bits of exponent, 7 of mantissa. High bytes 0x3C and 0xBC keep every value finite and small:
# 2⁻⁷ ≤ |x| < 2⁻⁵.
_SMALL = bytes(0x3C | (byte & 0x80) for byte in range(256))
_ONE = b"\x80\x3f"


@dataclass(frozen=True, slots=True)
class Tensor:
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def noise(seed: str, *shape: int) -> Tensor:
    data = bytearray(hashlib.shake_256(seed.encode()).digest(2 * math.prod(shape)))
    data[1::2] = data[1::2].translate(_SMALL)
    return Tensor("BF16", shape, bytes(data))


def packed(seed: str, length: int) -> Tensor:
    return Tensor("U8", (length,), hashlib.shake_256(seed.encode()).digest(length))


def ones(length: int) -> Tensor:
    return Tensor("BF16", (length,), _ONE * length)


def silenced(tensor: Tensor, rows: Iterable[int]) -> Tensor:
    """The same with these rows zero: in an output layer, tokens never said, as some other logit is positive."""
    data, width = bytearray(tensor.data), len(tensor.data) // tensor.shape[0]
    for row in rows:
        data[row * width : (row + 1) * width] = bytes(width)
    return Tensor(tensor.dtype, tensor.shape, bytes(data))


def draft_to_target(draft: int) -> Tensor:
    """Offsets from draft ids to target ids: the draft's vocabulary is the first part of the target's."""
    return Tensor("I64", (draft,), bytes(8 * draft))


def target_to_draft(draft: int, target: int) -> Tensor:
    return Tensor("BOOL", (target,), b"\1" * draft + bytes(target - draft))


def safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The file: 8 bytes of header length, the JSON header padded with spaces to 8 bytes, the data."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        end = at + len(tensor.data)
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(tensor.data for tensor in tensors.values())


def shards(tensors: Mapping[str, Tensor], count: int) -> dict[str, bytes]:
    """The same in `count` files, with the index that says which tensor is where."""
    parts: list[dict[str, Tensor]] = [{} for _ in range(count)]
    for number, (name, tensor) in enumerate(tensors.items()):
        parts[number * count // len(tensors)][name] = tensor
    files = {f"model-{n:05}-of-{count:05}.safetensors": part for n, part in enumerate(parts, 1)}
    index = {
        "metadata": {"total_size": sum(len(tensor.data) for tensor in tensors.values())},
        "weight_map": {name: path for path, part in files.items() for name in part},
    }
    return {
        **{path: safetensors(part) for path, part in files.items()},
        "model.safetensors.index.json": (json.dumps(index, indent=2) + "\n").encode(),
    }
