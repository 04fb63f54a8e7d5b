"""SGLang before 0.5.14 gives a server that speculates another share of the memory: the emulated 0.5.6 as the real one.

The table is read out of the wheel of 0.5.6 by dev/sglang/extract_moves.py, which runs the wheel's own
`_handle_gpu_memory_settings` (srt/server_args.py:701-866).
"""

from pathlib import Path

import pytest
from tests.support.running import emulated, tree

from paceline.engines.sglang import moved_arguments
from paceline_emulator import memory

READ = moved_arguments.moves_of("0.5.6")
GPUS = {"A100": (81920, 1), "H100": (81559, 1), "H200": (143771, 4)}
"""MiB and tensor parallelism of those that were asked; B200 has other chunks."""
ARMS = {"baseline": None, "EAGLE": "EAGLE", "EAGLE3": "EAGLE3", "STANDALONE": "STANDALONE", "NGRAM": "NGRAM"}


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("arm", ARMS)
def test_the_emulator_reserves_what_the_wheel_reserves(gpu: str, arm: str) -> None:
    assert READ
    mib, parallel = GPUS[gpu]
    args = {
        "speculative_algorithm": ARMS[arm], "tp_size": parallel, "pp_size": 1, "dp_size": 1,
        "chunked_prefill_size": None, "max_prefill_tokens": 16384,
    }  # fmt: skip
    assert memory.mem_fraction_static(args, mib) == READ.memory[gpu][arm]


def test_the_wheels_own_numbers() -> None:
    """As they were read by hand before the script was there."""
    assert READ
    assert [READ.memory["H200"][arm] for arm in ("baseline", "EAGLE3", "STANDALONE", "NGRAM")] == [
        0.9,
        0.886,
        0.858,
        0.9,
    ]
    assert [READ.memory["H100"][arm] for arm in ("baseline", "EAGLE3", "STANDALONE")] == [0.835, 0.81, 0.76]


@pytest.mark.parametrize(("version", "equal"), [("0.4.5", True), ("0.5.6", False), ("0.5.23", True)])
def test_an_emulated_pair_says_so(version: str, equal: bool, target: str, head: str, log: Path) -> None:
    said = []
    for flags in ((), tree(head, 3, 1, 4)):
        with emulated(target, log, "--tp-size", "4", *flags, PACELINE_EMULATE_VERSION=version) as server:
            said.append(server.get("/get_server_info").json["mem_fraction_static"])
    assert (said[0] == said[1]) is equal
    assert version != "0.5.6" or said == [0.9, 0.886]


def test_what_a_person_says_is_taken(target: str, head: str, log: Path) -> None:
    flags = ("--mem-fraction-static", "0.85", *tree(head, 3, 1, 4))
    with emulated(target, log, *flags, PACELINE_EMULATE_VERSION="0.5.6") as server:
        assert server.get("/get_server_info").json["mem_fraction_static"] == 0.85
