"""The wrapper's look at the energy counters: the real program, with a library that is played (`fake_nvml`)."""

import os
import time
from pathlib import Path

import pytest
from tests.support import fake_nvml
from tests.unit.round.test_wrapper_gpus import driver
from tests.unit.round.wrapped import Wrap, Wrapped

NVIDIA_SMI = """#!/bin/sh
case $1 in
*clocks.sm*) printf 'GPU-a, 1980\\nGPU-b, 1755\\n' ;;
*) echo 570.1 ;;
esac
"""
COUNTING = {"GPU_a": {"energy": 5_000_000, "watts": 700}, "GPU_b": {"energy": 70, "watts": 650}}


def wrapped_with(wrap: Wrap, directory: Path, gpus: dict[str, dict[str, object]], **env: str) -> Wrapped:
    path = driver(directory, NVIDIA_SMI)
    fake_nvml.python3_with(directory / "bin", **gpus)
    wrapped = wrap(PATH=path, **env)
    wrapped.until((wrapped.out / "ready").exists)
    return wrapped


def look(wrapped: Wrapped, number: int) -> list[str]:
    """The lines about energy."""
    wrapped.tell(f"arm/look.{number}")
    wrapped.until((wrapped.out / f"clocks.{number}").exists)
    clocks, _, energy = wrapped.said(f"clocks.{number}").partition("\n\n")
    assert clocks.splitlines()[1:] == ["GPU-a, 1980", "GPU-b, 1755"]
    return energy.splitlines()


def test_the_counters_of_all_gpus_are_read_at_each_look(wrap: Wrap, tmp_path: Path) -> None:
    wrapped = wrapped_with(wrap, tmp_path, COUNTING)
    assert look(wrapped, 1) == ["uuid,energy,shared", "GPU-a,5000000,", "GPU-b,70,"]
    assert look(wrapped, 2) == ["uuid,energy,shared", "GPU-a,5700000,", "GPU-b,650070,"]
    fake_nvml.write(tmp_path / "bin", GPU_a={"energy": 3}, GPU_b={"energy": 4})  # the driver was loaded again
    assert look(wrapped, 3) == ["uuid,energy,shared", "GPU-a,3,", "GPU-b,4,"]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"energy": None}, "GPU-b,,"),
        ({"energy": 70, "mig": 1}, "GPU-b,70,MIG"),
        ({"energy": 70, "mig": 0}, "GPU-b,70,"),
        ({"energy": 70, "Compute": [1]}, "GPU-b,70,processes"),
        ({"energy": 70, "Graphics": [1]}, "GPU-b,70,processes"),
        ({"energy": 70, "MPSCompute": [1]}, "GPU-b,70,processes"),
        ({"energy": 70, "Compute": [2**31]}, "GPU-b,70,processes"),
        ({"energy": 70, "memory": 500}, "GPU-b,70,memory"),
    ],
)
def test_before_the_server_whatever_uses_a_gpu_is_foreign(
    wrap: Wrap, tmp_path: Path, other: dict[str, object], said: str
) -> None:
    wrapped = wrapped_with(wrap, tmp_path, {**COUNTING, "GPU_b": other})
    assert look(wrapped, 1) == ["uuid,energy,shared", "GPU-a,5000000,", said]


def test_a_server_uses_its_gpus_and_so_do_its_own_processes(wrap: Wrap, tmp_path: Path) -> None:
    """The pid of no process here may be the server's as the node counts; that of another process is foreign."""
    wrapped = wrapped_with(wrap, tmp_path, COUNTING)
    server = wrapped.start("sh", "-c", "sleep 60 & echo $!; wait")
    wrapped.until(lambda: wrapped.log().strip())
    own = {"energy": 1, "memory": 90_000, "Compute": [server, int(wrapped.log()), 2**31]}
    fake_nvml.write(tmp_path / "bin", GPU_a=own, GPU_b={"energy": 2, "Compute": [os.getpid()]})
    assert look(wrapped, 1) == ["uuid,energy,shared", "GPU-a,1,", "GPU-b,2,processes"]


def test_a_container_with_mps_shares_its_gpus(wrap: Wrap, tmp_path: Path) -> None:
    wrapped = wrapped_with(wrap, tmp_path, COUNTING, CUDA_MPS_PIPE_DIRECTORY="/mps/nvidia.com/gpu/pipe")
    assert look(wrapped, 1) == ["uuid,energy,shared", "GPU-a,5000000,MPS", "GPU-b,70,MPS"]


def test_of_an_unknown_gpu_and_without_a_driver_nothing_is_said(wrap: Wrap, tmp_path: Path) -> None:
    wrapped = wrapped_with(wrap, tmp_path, {"GPU_a": {"energy": 9}})
    assert look(wrapped, 1) == ["uuid,energy,shared", "GPU-a,9,"]
    fake_nvml.write(tmp_path / "bin")
    assert look(wrapped, 2) == []


@pytest.mark.parametrize("python3", ["exit 1", "exec sleep 60"])
def test_a_program_that_fails_or_hangs_leaves_the_clocks(wrap: Wrap, tmp_path: Path, python3: str) -> None:
    wrapped = wrapped_with(wrap, tmp_path, COUNTING)
    (tmp_path / "bin" / "python3").write_text(f"#!/bin/sh\n{python3}\n")
    began = time.monotonic()
    assert look(wrapped, 1) == []
    assert time.monotonic() - began < 10
