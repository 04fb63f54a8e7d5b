"""Prometheus text with vLLM's own names, types, labels and buckets: `data/metrics.json`, made from a capture.

What nobody counts is there with 0. Those of speculation are there only where there is one, and begin at 0.
"""

import json
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from paceline_emulator.metrics import Histogram

Key = tuple[str, frozenset[tuple[str, str]]]
Family = dict[str, Any]

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
OF_SPECULATION = "vllm:spec_decode_"
CACHE_CONFIG = "vllm:cache_config_info"
BEGAN = "_created"
"""Of a counter or a histogram: a gauge of its own, with the time at which it began."""


class Page:
    """`model` is the served name, `positions` how many draft tokens have a counter, `cache` what this server's cache
    has otherwise than the captured one."""

    def __init__(self, model: str, positions: int, cache: Mapping[str, str]) -> None:
        self._common = {"engine": "0", "model_name": model}
        self._positions, self._cache = positions, cache
        self._began = time.time()
        self._values: dict[Key, float] = {}
        self._histograms: dict[str, Histogram] = {}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """A counter goes up; `name` as exposed, without `vllm:`."""
        key = _key(name, labels)
        self._values[key] = self._values.get(key, 0.0) + amount

    def put(self, name: str, value: float, **labels: str) -> None:
        self._values[_key(name, labels)] = float(value)

    def value(self, name: str, **labels: str) -> float:
        return self._values.get(_key(name, labels), 0.0)

    def observe(self, name: str, value: float) -> None:
        """Into a histogram, in its unit."""
        if name not in self._histograms:
            self._histograms[name] = _empty(f"vllm:{name}")
        self._histograms[name].observe(value, 1)

    def text(self) -> str:
        """The whole answer to GET /metrics."""
        lines = [
            line
            for family in listed()
            if self._positions or not family["name"].startswith(OF_SPECULATION)
            for line in self._family(family)
        ]
        return "\n".join(lines) + "\n"

    def _family(self, family: Family) -> Iterator[str]:
        name, kind = family["name"], family["type"]
        yield from (f"# HELP {name} {family['help']}", f"# TYPE {name} {kind}")
        for labels in self._series(family):
            if kind == "histogram":
                yield from self._histogram(family, labels)
            else:
                yield f"{name}{self._inside(family, labels)} {self._value(name, labels)}"
        if kind != "gauge":
            began = name.removesuffix("_total") + BEGAN if kind == "counter" else name + BEGAN
            yield from (f"# HELP {began} {family['help']}", f"# TYPE {began} gauge")
            yield from (f"{began}{self._inside(family, labels)} {self._began}" for labels in self._series(family))

    def _series(self, family: Family) -> list[dict[str, str]]:
        if family["name"] == CACHE_CONFIG:
            return [{**family["series"][0], **self._cache}]
        if "position" in family["labels"]:
            return [{"position": str(position)} for position in range(self._positions)]
        return list(family["series"])

    def _value(self, name: str, labels: Mapping[str, str]) -> float:
        return 1.0 if name == CACHE_CONFIG else self.value(name.removeprefix("vllm:"), **labels)

    def _histogram(self, family: Family, labels: dict[str, str]) -> Iterator[str]:
        name, seen = family["name"], 0
        found = self._histograms.get(name.removeprefix("vllm:")) or _empty(name)
        for bound, count in zip(family["buckets"], found.counts, strict=True):
            seen += count
            yield f"{name}_bucket{self._inside(family, {**labels, 'le': bound})} {float(seen)}"
        yield f"{name}_count{self._inside(family, labels)} {float(seen)}"
        yield f"{name}_sum{self._inside(family, labels)} {float(found.total)}"

    def _inside(self, family: Family, labels: Mapping[str, str]) -> str:
        common = {name: value for name, value in self._common.items() if name in family["labels"]}
        inside = ",".join(f'{name}="{value}"' for name, value in sorted({**common, **labels}.items()))
        return "{" + inside + "}"


@cache
def listed() -> tuple[Family, ...]:
    """In the order of the page."""
    return tuple(json.loads((files(__package__) / "data" / "metrics.json").read_text()))


def _empty(name: str) -> Histogram:
    bounds = next(family["buckets"] for family in listed() if family["name"] == name)[:-1]
    return Histogram(bounds=[float(bound) for bound in bounds], counts=[0] * (len(bounds) + 1))


def _key(name: str, labels: Mapping[str, str]) -> Key:
    return name, frozenset(labels.items())
