"""The 20 throughputs published for Qwen3-Coder-Next with its EAGLE3 head: what the emulator is held to.

Source: "1.37x Faster on Alibaba's 80B Code Model: EAGLE3 for Qwen3-Coder-Next" and the model card of
https://huggingface.co/thoughtworks/Qwen3-Coder-Next-Eagle3 — 4x H200, TP 4, temperature 0, triton, a fork of
SGLang 0.5.6. Output tokens per second.
"""

from dataclasses import dataclass

SOURCE = "https://huggingface.co/thoughtworks/Qwen3-Coder-Next-Eagle3 and the article that announces it"

Tree = tuple[int, int, int]
"""(steps, topk, draft tokens)"""

WIDE: Tree = (3, 4, 8)
NARROW: Tree = (5, 1, 6)

# Our prompt set → the benchmark in whose spirit it is written.
PUBLISHED_AS = {"code": "HumanEval", "swe": "SWEBench-Verified", "terminal": "Terminal-Bench", "chat": "MT-Bench"}


@dataclass(frozen=True, slots=True)
class Point:
    table: str
    dataset: str
    batch: int
    tree: Tree | None
    throughput: float


def _table(name: str, batch: int, tree: Tree | None, **throughputs: float) -> list[Point]:
    return [Point(name, dataset, batch, tree, value) for dataset, value in throughputs.items()]


POINTS = [
    *_table("B=1: baseline", 1, None, swe=163.9, code=171.1, terminal=166.0, chat=166.5),
    *_table("B=1: EAGLE3", 1, WIDE, swe=249.7, code=237.9, terminal=231.0, chat=196.0),
    *_table("B=32: baseline", 32, None, chat=1529.1, swe=2010.4, code=1740.2, terminal=2310.5),
    *_table("B=32: wide tree", 32, WIDE, chat=2009.4, swe=2186.5, code=1793.8, terminal=2057.1),
    *_table("B=32: narrow tree", 32, NARROW, chat=1688.6, terminal=2379.8, code=1756.3, swe=1998.7),
]


def throughput(dataset: str, batch: int, tree: Tree | None) -> float:
    """The published number of one point."""
    return next(p.throughput for p in POINTS if (p.dataset, p.batch, p.tree) == (dataset, batch, tree))
