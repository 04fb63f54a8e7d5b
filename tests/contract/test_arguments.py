"""What real servers say they run with is equal on all arms, once speculation's own and what it moves are left out."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.running import emulated, tree

from paceline.engines import ENGINES, Scrape
from paceline.engines.sglang import moved_arguments
from paceline.engines.sglang.versions import KNOWN
from paceline.evidence.arguments import comparable, differences

CAPTURES = Path(__file__).parent / "captures"
SGLANG, VLLM, JAX = ENGINES["SGLang"], ENGINES["vLLM"], ENGINES["SGLangJAX"]
FOLLOWS = {
    "--attention-backend": {"attention_backend", "cuda_graph_config"},  # torch_native has no graphs
    "--model-path": {"model_path", "served_model_name", "tokenizer_path"},
}
"""What a flag of these servers sets beside the argument of its name."""
UNPINNED = {"random_seed"}
"""Paceline gives it to every arm; whoever made the captures did not."""


def info(engine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CAPTURES / engine / "server_info.json").read_text())
    return found


def start(arm: str) -> Scrape:
    """A real vLLM as a round would look at it."""
    at = CAPTURES / "vllm" / arm
    pages = {"/version": '{"version": "0.33.0"}', "/metrics": (at / "metrics.txt").read_text()}
    return Scrape(pages=pages, log=(at / "start.log").read_text())


def asked(said: dict[str, Any]) -> dict[str, str]:
    """The flags of the command, by name."""
    words = shlex.split(said["launch_command"])
    starts = [i for i, word in enumerate(words) if word.startswith("--")]
    return {words[i]: " ".join(words[i + 1 : end]) for i, end in zip(starts, [*starts[1:], len(words)], strict=True)}


def set_otherwise(one: dict[str, str], other: dict[str, str]) -> set[str]:
    """Arguments that whoever started these two gave them differently; `FOLLOWS` with them."""
    flags = {flag for flag in one.keys() | other.keys() if one.get(flag) != other.get(flag)}
    return set().union(*(FOLLOWS.get(flag, {flag[2:].replace("-", "_")}) for flag in flags))


@pytest.mark.parametrize("algorithm", ["eagle", "eagle3", "ngram"])
def test_sglang_0_5_23_differs_in_nothing_that_was_not_asked_for(algorithm: str) -> None:
    base, mine = info("base"), info(algorithm)
    otherwise = UNPINNED | set_otherwise(asked(base), asked(mine))
    left_out = (*SGLANG.moved(()), *otherwise)
    assert differences(comparable(mine, left_out), comparable(base, left_out)) == ()
    assert len(comparable(base, left_out)) > 450, "the rest is really compared"


def test_of_two_that_speculate_alike_even_what_was_asked_is_equal() -> None:
    """EAGLE and EAGLE3 were started with the same flags, but for the head and the port."""
    left_out = (*SGLANG.moved(()), *UNPINNED, "port")
    assert differences(comparable(info("eagle"), left_out), comparable(info("eagle3"), left_out)) == ()


def test_sglang_0_5_23_moves_what_the_list_says_on_a_cpu() -> None:
    """Without the list the same pair differs: in speculation's own and in overlap scheduling."""
    base, mine = info("base"), info("eagle3")
    left_out = tuple(UNPINNED | set_otherwise(asked(base), asked(mine)))
    found = differences(comparable(mine, left_out), comparable(base, left_out))
    assert "disable_overlap_schedule is true, but false on the baseline" in map(str, found)


def test_sglang_jax_differs_in_nothing_that_was_not_asked_for() -> None:
    """The two were started with other pages, lengths and seats; paddings follow from these."""
    asked_for = (
        "port", "page_size", "chunked_prefill_size", "max_prefill_tokens", "context_length", "max_running_requests",
        "precompile_bs_paddings", "precompile_token_paddings",
    )  # fmt: skip
    left_out = (*JAX.moved(()), *asked_for)
    base, mine = comparable(info("sglang_jax/base"), left_out), comparable(info("sglang_jax/eagle3"), left_out)
    assert differences(mine, base) == ()
    assert len(base) > 100


def test_vllm_differs_in_nothing_but_speculation() -> None:
    """The part of its arguments that the start line has; in its graphs' sizes a CPU shows nothing."""
    base, mine = (comparable(VLLM.probe("0.33.0").resolved(start(arm)), VLLM.moved(())) for arm in ("base", "eagle3"))
    assert differences(mine, base) == ()
    assert {"load_format", "seed", "compilation_config.mode", "dtype"} <= base.keys()


BY_THE_TARGET = {"disable_radix_cache": ("0.5.9", ("Qwen3-Next",))}
"""What a hybrid loses under speculation in one release: the judge refuses it, and docs/engines-sglang.md says so."""


@pytest.mark.parametrize("read", moved_arguments.releases(), ids=lambda one: one.name)
def test_whatever_a_release_moves_in_spite_of_the_pins_is_on_the_list(read: moved_arguments.ReleaseMoves) -> None:
    """What it moves without them has a rule, or moves with what has one (`page_size` with the attention backend)."""
    uncovered = comparable(dict.fromkeys(read.moves_when_pinned, 1), SGLANG.moved(()))
    for field in uncovered:
        assert (read.name, *read.moves_when_pinned[field].on["EAGLE3"]) == (BY_THE_TARGET[field][0], "Qwen3-Next")
    ruled = {moved_arguments.MEMORY, moved_arguments.BACKEND, "page_size"} | set(BY_THE_TARGET)
    assert set(comparable(dict.fromkeys(read.moves, 1), SGLANG.moved(()))) <= ruled


def test_every_release_from_the_oldest_known_on_was_read() -> None:
    assert [moved_arguments.releases()[0].name, moved_arguments.releases()[-1].name] == [
        KNOWN[0].version,
        KNOWN[-1].version,
    ]
    assert len(moved_arguments.releases()) == 67


PINS = (
    "--max-running-requests", "64", "--random-seed", "0", "--decode-log-interval", "10", "--tp-size", "4",
    "--mem-fraction-static", "0.85", "--served-model-name", "pair",
)  # fmt: skip
"""As Paceline starts every arm; tests/support/running.py pins the attention backend."""
NGRAM = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "8")
ADAPTIVE = ("--speculative-adaptive", "--speculative-eagle-topk", "1")


def arms(head: str, version: str) -> Iterator[tuple[str, ...]]:
    """A candidate of every algorithm that the release has."""
    headed = ("--speculative-draft-model-path", head)
    yield tree(head, 3, 1, 4)
    yield tree(head, 3, 4, 8)
    yield tree(head, 3, 1, 4, "EAGLE")
    if version != "0.4.5":
        yield tree(head, 3, 1, 4, "STANDALONE")
        yield NGRAM
    if version == "0.5.23":
        yield ("--speculative-algorithm", "DFLASH", *headed, "--speculative-dflash-block-size", "8")
        yield ("--speculative-algorithm", "DSPARK", *headed, "--speculative-dspark-block-size", "8")
        yield ("--speculative-algorithm", "EAGLE3", *headed, *ADAPTIVE)


@pytest.mark.parametrize("version", ["0.4.5", "0.5.6", "0.5.23"])
def test_the_emulators_arms_differ_in_nothing_either(version: str, target: str, head: str, log: Path) -> None:
    def of(*flags: str) -> dict[str, str]:
        with emulated(target, log, *PINS, *flags, PACELINE_EMULATE_VERSION=version) as server:
            return comparable(server.get("/get_server_info").json, (*SGLANG.moved(()), "port"))

    base = of()
    for flags in arms(head, version):
        assert differences(of(*flags), base) == (), flags
    assert len(base) > 80
