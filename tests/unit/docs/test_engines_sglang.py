"""The tables of docs/engines-sglang.md are those of the wheels, and its advice holds. Anew: PACELINE_GOLDEN=write."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.unit.engines.sglang.servers import chain, server, wide

from paceline.core import Arm
from paceline.engines import ENGINES
from paceline.engines.sglang import moves
from paceline.engines.sglang.flags import flags, is_in, releases
from paceline.engines.sglang.moves import Moved, Release

SGLANG = ENGINES["SGLang"]
PAGE = Path(__file__).parents[3] / "docs" / "engines-sglang.md"
MEMORY, FIELDS = "memory", "fields"
COLUMNS = ("attention_backend", "disable_overlap_schedule", "disable_piecewise_cuda_graph")
SAID_ONCE = ("page_size", "cuda_graph_bs", "cuda_graph_config.decode.bs")
GPUS = 4


def by_memory() -> Iterator[str]:
    """mem_fraction_static of a dense target on four H200, and on one GPU of 80 GB."""
    yield "| release | baseline | EAGLE, EAGLE3 | STANDALONE | NGRAM | DFLASH | set in |"
    yield "|---|---|---|---|---|---|---|"
    rows: dict[tuple[str, ...], list[str]] = {}
    for read in moves.releases():
        arms = ("baseline", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH")
        cells = tuple(_both(read.memory, arm) for arm in arms)
        at = read.moves[moves.MEMORY].at[0] if moves.MEMORY in read.moves else "not by the arm"
        rows.setdefault(cells, []).append(f"{read.name} {at}")
    for cells, found in rows.items():
        names = [one.split(" ", 1) for one in found]
        by_the_arm = names[0][1] != "not by the arm"
        where = ", ".join(f"{name} `{at}`" for name, at in names) if by_the_arm else "not by the arm"
        yield f"| {_range([name for name, _ in names])} | {' | '.join(cells)} | {where} |"


def _both(memory: Mapping[str, Mapping[str, float]], arm: str) -> str:
    shares = [memory[gpu].get(arm) for gpu in ("H200", "H100")]
    return "–" if None in shares else " / ".join(f"{share:.3f}" for share in shares)


def by_field() -> Iterator[str]:
    """Who moves what else."""
    yield "| release | attention backend | overlap scheduling off | prefill graphs off | others | has not |"
    yield "|---|---|---|---|---|---|"
    for read in moves.releases():
        cells = [_cell(read.moves.get(field)) for field in COLUMNS]
        others = [f"`{name}`: {_cell(read.moves[name])}" for name in read.moves if name not in _known()]
        lacks = ", ".join(sorted(read.lacks)) or "–"
        yield f"| {read.name} | {' | '.join(cells)} | {'; '.join(others) or '–'} | {lacks} |"


def _known() -> set[str]:
    return {*COLUMNS, *SAID_ONCE, moves.MEMORY}


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
    return f"{'; '.join(said)} `{moved.at[0]}`"


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


@pytest.mark.parametrize("read", moves.releases(), ids=lambda one: one.name)
def test_every_release_stands_there(read: Release) -> None:
    assert f"\n| {read.name} |" in PAGE.read_text()


MEM, TRITON, B200 = "--mem-fraction-static=0.85", "--attention-backend=triton", "NVIDIA-B200"
EXTRA, RENAMED = "--mamba-scheduler-strategy=extra_buffer", "--mamba-radix-cache-strategy=extra_buffer"
OVERLAP = {"env": ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"},)}
NO_OVERLAP = {"env": ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"},)}


def _from(first: str, last: str) -> list[str]:
    return [name for name in releases() if is_in(name, [[first, last]])]


ADVICE: Mapping[str, tuple[list[str], Sequence[str], Arm, str]] = {
    "`--mem-fraction-static` from\n  0.4.7 to 0.5.13.post1 (rule `memory-moves`)": (
        _from("0.4.7", "0.5.13.post1"), [MEM], chain(), "memory-moves"),
    "`--attention-backend` for a branching tree\n  (`tree-backend-moves`)": (
        _from("0.5.3", "0.5.23"), [TRITON, MEM], wide(), "tree-backend-moves"),
    "for everything except plain chains, from\n  0.5.14 on for these too (`backend-moves`)": (
        _from("0.5.14", "0.5.23"), [TRITON], chain(), "backend-moves"),
    "`--mamba-scheduler-strategy=extra_buffer` or `--disable-radix-cache` in `spec.engine.args` makes": (
        _from("0.5.9", "0.5.13.post1"), [MEM, EXTRA], chain(), ""),
    "From 0.5.14 on the flag is called `--mamba-radix-cache-strategy`": (
        _from("0.5.14", "0.5.23"), [RENAMED], chain(), ""),
    "the older name ends\n  with 0.5.19": (_from("0.5.9", "0.5.19"), [MEM, EXTRA], chain(), ""),
    "`--max-running-requests`, which SGLang lowers": (
        _from("0.4.5", "0.5.23"), [MEM, "--max-running-requests=64"], chain(), ""),
}  # fmt: skip
"""A sentence that names a flag → where it holds, the arguments that follow it, an arm that needs them, and the rule
that refuses the arm without the first of them ("" where a target decides)."""


@pytest.mark.parametrize("sentence", ADVICE)
def test_its_advice_is_taken_by_every_release_that_it_names(sentence: str) -> None:
    versions, args, arm, rule = ADVICE[sentence]
    assert sentence in PAGE.read_text()
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
