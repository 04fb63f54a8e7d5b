"""The GPUs of an arm's container, as its wrapper asks the driver for them."""

import os
from pathlib import Path

import pytest
from tests.unit.round.wrapped import Wrap

NVIDIA_SMI = """#!/bin/sh
case $1 in
*driver_version) echo 550.127.08 ; echo 550.127.08 ;;
*memory.used) cat "{memory}" ;;
*uuid) printf 'GPU-a\\nGPU-b\\n' ;;
esac
"""


def driver(directory: Path, nvidia_smi: str) -> str:
    """A PATH with this script as nvidia-smi."""
    program = directory / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(nvidia_smi)
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def test_gpus_are_named_and_their_memory_is_told_at_each_look(wrap: Wrap, tmp_path: Path) -> None:
    """The next arm must not meet memory that the last one still holds."""
    memory = tmp_path / "memory"
    memory.write_text("12\n4\n")
    wrapped = wrap(PATH=driver(tmp_path, NVIDIA_SMI.format(memory=memory)), NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b")
    wrapped.until((wrapped.out / "ready").exists)
    assert wrapped.said("driver") == "550.127.08\n"
    assert wrapped.said("gpus") == "GPU-a,GPU-b\n"
    assert wrapped.said("memory") == "12\n"
    memory.write_text("4\n70000\n")
    wrapped.tell("arm/look.1")
    wrapped.until((wrapped.out / "clocks.1").exists)
    assert wrapped.said("memory") == "70000\n"


def test_compiled_kernels_are_counted_before_the_server_and_at_each_look(wrap: Wrap, tmp_path: Path) -> None:
    kernels = tmp_path / "jit"
    (kernels / "triton").mkdir(parents=True)
    wrapped = wrap(PACELINE_KERNELS=str(kernels))
    wrapped.until((wrapped.out / "ready").exists)
    assert wrapped.said("kernels") == "0\n"
    (kernels / "triton" / "one.cubin").write_text("")
    wrapped.tell("arm/look.1")
    wrapped.until((wrapped.out / "clocks.1").exists)
    assert wrapped.said("kernels") == "1\n"


@pytest.mark.parametrize("unknown", ["", "/not/there"])
def test_kernels_that_nobody_can_count_are_not_none(wrap: Wrap, unknown: str) -> None:
    wrapped = wrap(PACELINE_KERNELS=unknown)
    wrapped.until((wrapped.out / "ready").exists)
    assert not (wrapped.out / "kernels").exists()


@pytest.mark.parametrize("handed", ["", "all", "void"])
def test_gpus_that_nobody_names_are_asked_for(wrap: Wrap, tmp_path: Path, handed: str) -> None:
    """A device plugin may hand them out otherwise than by the variable (CDI)."""
    memory = tmp_path / "memory"
    memory.write_text("12\n")
    wrapped = wrap(PATH=driver(tmp_path, NVIDIA_SMI.format(memory=memory)), NVIDIA_VISIBLE_DEVICES=handed)
    wrapped.until((wrapped.out / "ready").exists)
    assert wrapped.said("gpus") == "GPU-a,GPU-b\n"


def test_where_nobody_knows_the_gpus_there_are_none(wrap: Wrap) -> None:
    wrapped = wrap(NVIDIA_VISIBLE_DEVICES="void")
    wrapped.until((wrapped.out / "ready").exists)
    assert wrapped.said("gpus") == "\n"


@pytest.mark.parametrize("unknown", ["[N/A]", "[Not Supported]", ""])
def test_a_driver_that_gives_no_number_gives_none(wrap: Wrap, tmp_path: Path, unknown: str) -> None:
    memory = tmp_path / "memory"
    memory.write_text(f"{unknown}\n")
    wrapped = wrap(PATH=driver(tmp_path, NVIDIA_SMI.format(memory=memory)))
    wrapped.until((wrapped.out / "ready").exists)
    assert wrapped.said("memory") == "\n"


COUNTERS = ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
COUNTED = ",".join(f"clocks_event_reasons_counters.{name}" for name in COUNTERS)
ASKED = "uuid,clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu"


@pytest.mark.parametrize(
    ("unknown", "fields"),
    [
        ("no_such_field", f"{ASKED},clocks_event_reasons.active,{COUNTED}"),
        ("clocks_event_reasons_counters", f"{ASKED},clocks_event_reasons.active"),
        ("clocks_event_reasons", f"{ASKED},clocks_throttle_reasons.active"),
        ("_reasons", ASKED),
    ],
)
def test_a_look_says_how_the_gpus_are_as_far_as_the_driver_knows(
    wrap: Wrap, tmp_path: Path, unknown: str, fields: str
) -> None:
    """Of a field that it does not know nvidia-smi says so, and exits with 2."""
    script = f"""#!/bin/sh
case $1 in *{unknown}*) echo 'Field "{unknown}" is not a valid field to query.'; exit 2 ;; esac
case $1 in *clocks.sm*) echo "GPU-a, 100$(cat "{tmp_path}/looks"), 1980, and more" ;; *) echo 570.1 ;; esac
"""
    (tmp_path / "looks").write_text("1")
    wrapped = wrap(PATH=driver(tmp_path, script))
    wrapped.until((wrapped.out / "ready").exists)
    assert not wrapped.said("clocks.1")  # nobody has looked
    for look in (1, 2):
        (tmp_path / "looks").write_text(str(look))
        wrapped.tell(f"arm/look.{look}")
        wrapped.until((wrapped.out / f"clocks.{look}").exists)
        assert wrapped.said(f"clocks.{look}") == f"{fields}\nGPU-a, {1000 + look}, 1980, and more\n"
