"""The energy of a load: the sum over the arm's GPUs, or why there is none."""

from importlib import resources

import pytest

from paceline.evidence.clocks import Reading, read_clocks
from paceline.evidence.energy import SHARED, energy_between


def gpus(*millijoules: int | None, shared: str = "") -> tuple[Reading, ...]:
    return tuple(
        Reading(uuid=f"GPU-{place}", millijoules=counted, shared=shared) for place, counted in enumerate(millijoules)
    )


IDLE, BEFORE, AFTER = gpus(100, 900), gpus(1_000, 2_000), gpus(501_000, 302_000)


def test_it_is_the_sum_over_all_gpus_of_the_arm() -> None:
    found = energy_between(IDLE, BEFORE, AFTER, 2)
    assert (found.joules, found.unknown) == (800.0, "")


@pytest.mark.parametrize(
    ("idle", "before", "after", "own", "why"),
    [
        (IDLE, BEFORE, AFTER, 0, "share"),
        (IDLE, BEFORE, AFTER, 1, "shows 2 GPUs"),
        (IDLE, BEFORE, AFTER[:1], 2, "shows 1 GPUs"),
        (IDLE[:1], BEFORE, AFTER, 2, "other ones than before"),
        (IDLE, BEFORE, (*AFTER[:1], Reading(uuid="GPU-9", millijoules=9_000)), 2, "other ones"),
        (IDLE, BEFORE, gpus(501_000, 1_999), 2, "began again"),
        (IDLE, BEFORE, gpus(501_000, 2_000), 2, "stood still"),
        (IDLE, gpus(1_000, None), AFTER, 2, "could not be read"),
        (IDLE, (), AFTER, 2, "could not be read"),
        ((), BEFORE, AFTER, 2, "could not be read"),
        (gpus(100, 900, shared="memory"), BEFORE, AFTER, 2, "in use before"),
        (IDLE, BEFORE, gpus(501_000, 302_000, shared="processes"), 2, "not the server's"),
        (IDLE, gpus(1_000, 2_000, shared="MIG"), AFTER, 2, "MIG"),
        (IDLE, gpus(1_000, 2_000, shared="a word of the server"), AFTER, 2, "GPU-0 is shared"),
    ],
)
def test_a_part_of_it_is_none(
    idle: tuple[Reading, ...], before: tuple[Reading, ...], after: tuple[Reading, ...], own: int, why: str
) -> None:
    found = energy_between(idle, before, after, own)
    assert found.joules is None
    assert why in found.unknown


def test_it_is_read_beside_the_clocks() -> None:
    told = "uuid,clocks.sm\nGPU-a, 1755\nGPU-b, 1980\n\nuuid,energy,shared\nGPU-b,,MIG\nGPU-a,91403239,\nGPU-x,1,\n"
    assert read_clocks(told) == (
        Reading(uuid="GPU-a", sm_mhz=1755, millijoules=91_403_239),
        Reading(uuid="GPU-b", sm_mhz=1980, shared="MIG"),
    )


def test_every_word_of_the_program_has_its_sentence() -> None:
    """The program runs in the engine's image, where Paceline is not."""
    text = (resources.files("paceline.render") / "energy.py").read_text()
    assert all(f'return "{word}"' in text for word in SHARED)
