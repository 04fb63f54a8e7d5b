"""The tables of docs/engines-sglang.md are those of the wheels, and its advice holds.

To write them: PACELINE_GOLDEN=write."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from tests.support.tables import short
from tests.unit.engines.sglang.servers import chain, server, wide

from paceline.core import Arm
from paceline.engines import ENGINES
from paceline.engines.sglang import moved_arguments
from paceline.engines.sglang.flags_by_release import flags, is_in, releases
from paceline.engines.sglang.moved_arguments import Moved, ReleaseMoves

SGLANG = ENGINES["SGLang"]
PAGE = Path(__file__).parents[3] / "docs" / "engines-sglang.md"
MEMORY, FIELDS = "memory", "fields"
COLUMNS = ("attention_backend", "disable_overlap_schedule", "disable_piecewise_cuda_graph")
SAID_ONCE = ("page_size", "cuda_graph_bs", "cuda_graph_config.decode.bs")
GPUS = 4
FAMILY = ("EAGLE", "EAGLE3", "EAGLE3 tree")
"""EAGLE* in the table."""


def by_memory() -> Iterator[str]:
    """mem_fraction_static of a dense target on four H200, and on one GPU of 80 GB."""
    yield "| release | baseline | EAGLE, EAGLE3 | STANDALONE | NGRAM | DFLASH |"
    yield "|---|---|---|---|---|---|"
    arms = ("baseline", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH")
    yield from _rows((read.name, [_both(read.memory, arm) for arm in arms]) for read in moved_arguments.releases())


def _rows(found: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    """Neighbours with the same cells are one row; a cell that repeats the one above it is empty."""
    groups = groupby(found, key=lambda one: one[1])
    rows = [f"| {_range([name for name, _ in same])} | {' | '.join(cells)} |" for cells, same in groups]
    yield from short(rows, rows[0].count(" | ") + 1)


def _both(memory: Mapping[str, Mapping[str, float]], arm: str) -> str:
    shares = [memory[gpu].get(arm) for gpu in ("H200", "H100")]
    return "–" if None in shares else " / ".join(f"{share:.3f}" for share in shares)


def by_field() -> Iterator[str]:
    """Who moves what else."""
    yield "| release | attention backend | overlap scheduling off | prefill graphs off | others | has not |"
    yield "|---|---|---|---|---|---|"
    yield from _rows((read.name, _moved(read)) for read in moved_arguments.releases())


def _moved(read: ReleaseMoves) -> list[str]:
    cells = [_cell(read.moves.get(field)) for field in COLUMNS]
    others = [f"`{name}`: {_cell(read.moves[name])}" for name in read.moves if name not in _known()]
    return [*cells, "; ".join(others) or "–", ", ".join(sorted(read.lacks)) or "–"]


def _known() -> set[str]:
    return {*COLUMNS, *SAID_ONCE, moved_arguments.MEMORY}


def _cell(moved: Moved | None) -> str:
    """Arms that move it by the same GPUs and targets, together; a GPU is named where it is not all, and so a target."""
    if moved is None:
        return "–"
    groups: dict[tuple[str, str], list[str]] = {}
    for arm, gpus in moved.by.items():
        where = "" if len(gpus) == GPUS else f" on {_gpus(gpus)}"
        targets = "" if len(moved.on[arm]) > 1 else f" ({moved.on[arm][0]})"
        groups.setdefault((where, targets), []).append(arm)
    said = [f"{', '.join(arms)}{where}{targets}" for (where, targets), arms in groups.items()]
    return "; ".join(said).replace(", ".join(FAMILY), "EAGLE*")


def _gpus(gpus: tuple[str, ...]) -> str:
    return "/".join(gpu for gpu in gpus if gpu != "H100" or "H200" not in gpus)


def _range(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


TABLES = {MEMORY: by_memory, FIELDS: by_field}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_the_wheels(name: str) -> None:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    text = PAGE.read_text()
    table = "\n".join(TABLES[name]()) + "\n"
    before, there, after = text.partition(begin)[0], text.partition(begin)[2].partition(end)[0], text.partition(end)[2]
    if os.environ.get("PACELINE_GOLDEN") == "write":
        PAGE.write_text(f"{before}{begin}{table}{end}{after}")
        there = table
    assert there == table


@pytest.mark.parametrize("name", TABLES)
def test_every_release_stands_in_one_row(name: str) -> None:
    names = [read.name for read in moved_arguments.releases()]
    table = PAGE.read_text().partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
    rows = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[3:]]
    ends = [(row.partition(" to ")[0], row.rpartition(" to ")[2]) for row in rows]
    assert [one for first, last in ends for one in names[names.index(first) : names.index(last) + 1]] == names


MEM, TRITON, B200 = "--mem-fraction-static=0.85", "--attention-backend=triton", "NVIDIA-B200"
EXTRA, RENAMED = "--mamba-scheduler-strategy=extra_buffer", "--mamba-radix-cache-strategy=extra_buffer"
OVERLAP = {"env": ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"},)}
NO_OVERLAP = {"env": ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"},)}


def _from(first: str, last: str) -> list[str]:
    return [name for name in releases() if is_in(name, [[first, last]])]


ADVICE: Mapping[str, tuple[list[str], Sequence[str], Arm, str]] = {
    "`--mem-fraction-static` from 0.4.7 to 0.5.13.post1 (rule `memory-moves`)": (
        _from("0.4.7", "0.5.13.post1"), [MEM], chain(), "memory-moves"),
    "`--attention-backend` for a branching tree (`tree-backend-moves`)": (
        _from("0.5.3", "0.5.23"), [TRITON, MEM], wide(), "tree-backend-moves"),
    "for everything except plain chains, from 0.5.14 on for these too (`backend-moves`)": (
        _from("0.5.14", "0.5.23"), [TRITON], chain(), "backend-moves"),
    "`--mamba-scheduler-strategy=extra_buffer` or `--disable-radix-cache` in `spec.engine.args` makes": (
        _from("0.5.9", "0.5.13.post1"), [MEM, EXTRA], chain(), ""),
    "From 0.5.14 on the flag is called `--mamba-radix-cache-strategy`": (
        _from("0.5.14", "0.5.23"), [RENAMED], chain(), ""),
    "the older name ends with 0.5.19": (_from("0.5.9", "0.5.19"), [MEM, EXTRA], chain(), ""),
    "`--max-running-requests`, which SGLang lowers": (
        _from("0.4.5", "0.5.23"), [MEM, "--max-running-requests=64"], chain(), ""),
}  # fmt: skip
"""A sentence that names a flag → where it holds, the arguments that follow it, an arm that needs them, and the rule
that refuses the arm without the first of them ("" where a target decides)."""


@pytest.mark.parametrize("sentence", ADVICE)
def test_its_advice_is_taken_by_every_release_that_it_names(sentence: str) -> None:
    versions, args, arm, rule = ADVICE[sentence]
    assert sentence in " ".join(PAGE.read_text().split())
    for version in versions:
        env = NO_OVERLAP if arm.tree and arm.tree.top_k > 1 else OVERLAP
        product = B200 if rule == "backend-moves" else "NVIDIA-H200"
        given = server(*args, version=version, product=product, **env)
        assert (version, SGLANG.refusals(given, (arm,))) == (version, ())
        without = server(*args[1:], version=version, product=product, pinned=False, **env)
        assert not rule or rule in {one.rule for one in SGLANG.refusals(without, (arm,))}, version


def test_every_flag_of_its_text_is_in_a_sentence_that_is_checked() -> None:
    """Tables aside: they are read in the wheels."""
    text = "\n".join(line for line in PAGE.read_text().splitlines() if not line.startswith("|"))
    named = set(re.findall(r"--[a-z][\w-]+", text)) - {"--models"}
    assert named <= {word.partition("=")[0] for _, args, _, _ in ADVICE.values() for word in args} | {
        "--disable-radix-cache"
    }
    assert all("--disable-radix-cache" in flags(version) for version in _from("0.5.9", "0.5.13.post1"))
