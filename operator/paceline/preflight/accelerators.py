"""Memory of accelerators by the value of the node's product label.

A number of gigabytes in the label takes precedence (`NVIDIA-A100-SXM4-80GB`, `…-MIG-1g.10gb`). The table has data sheet
numbers: nvidia.com product pages of each card, cloud.google.com/tpu/docs of each generation. Drivers show up to 1 %
less; within that, a data sheet's GB of HBM are GiB.
"""

import re
from collections.abc import Mapping

GIB = 1 << 30

GIGABYTES: Mapping[str, int] = {
    "H100": 80,
    "H200": 140,
    "H800": 80,
    "H20": 96,
    "GH200": 96,
    "A100": 40,
    "A800": 80,
    "A10": 24,
    "A10G": 24,
    "A30": 24,
    "A40": 48,
    "L4": 24,
    "L40": 48,
    "L40S": 48,
    "T4": 16,
    "V100": 16,
    "B200": 180,
    "GB200": 186,
    "B300": 270,
    "GB300": 278,
    "GB10": 119,  # 128 GB shared with the processor
    "tpu-v4-podslice": 32,
    "tpu-v5-lite-podslice": 16,
    "tpu-v5-lite-device": 16,
    "tpu-v5p-slice": 95,
    "tpu-v6e-slice": 32,
}

TERABYTES_PER_SECOND: Mapping[str, float] = {
    "H100": 3.35,
    "H200": 4.8,
    "H800": 3.35,
    "H20": 4.0,
    "GH200": 4.0,
    "A100": 2.0,
    "A800": 2.0,
    "A10": 0.6,
    "A10G": 0.6,
    "A30": 0.93,
    "A40": 0.7,
    "L4": 0.3,
    "L40": 0.86,
    "L40S": 0.86,
    "T4": 0.32,
    "V100": 0.9,
    "B200": 8.0,
    "GB200": 8.0,
    "B300": 8.0,
    "GB300": 8.0,
    "GB10": 0.27,
    "tpu-v4-podslice": 1.2,
    "tpu-v5-lite-podslice": 0.82,
    "tpu-v5-lite-device": 0.82,
    "tpu-v5p-slice": 2.77,
    "tpu-v6e-slice": 1.64,
}
"""Memory bandwidth, from the same data sheets. Only used to guess speeds."""

_IN_THE_LABEL = re.compile(r"([0-9]+)GB", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_UNITS |= {f"{letter}i": 1 << (10 * power) for power, letter in enumerate("KMGTP", 1)}


def memory_of(product: str, declared: str | None) -> int | None:
    """Bytes of one accelerator; `declared` is `accelerator.memory`, a quantity. None if neither is known."""
    if declared:
        number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", declared, re.ASCII).groups()  # type: ignore[union-attr]
        return int(float(number) * _UNITS[unit])
    if sizes := _IN_THE_LABEL.findall(product):
        return int(sizes[-1]) * GIB
    size = _of_product(GIGABYTES, product)
    return int(size) * GIB if size else None


def bandwidth_of(product: str) -> float:
    """Bytes per second of one accelerator; an A100's if unknown."""
    return (_of_product(TERABYTES_PER_SECOND, product) or TERABYTES_PER_SECOND["A100"]) * 1e12


def _of_product(table: Mapping[str, float], product: str) -> float | None:
    named = (part for part in (product, *re.split(r"[-_]", product)) if part in table)
    return next((table[part] for part in named), None)
