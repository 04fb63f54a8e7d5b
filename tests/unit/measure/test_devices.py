"""Which GPUs of a machine are used: a user of a shared one keeps to their own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.measure.test_machine import HERE

from paceline.measure import devices, pod
from paceline.measure.devices import DevicesError, chosen, other_programs, visible
from paceline.measure.machine import Machine

THERE = {"0": "GPU-00aa", "1": "GPU-11bb", "2": "GPU-22cc", "3": "GPU-33dd"}

Driver = Callable[[str], None]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """An nvidia-smi of four GPUs, on which these programs compute."""

    def make(apps: str = "") -> None:
        gpus = "".join(f"{number}, {uuid}\n" for number, uuid in THERE.items())
        (tmp_path / "gpus").write_text(gpus)
        (tmp_path / "apps").write_text(apps)
        program = tmp_path / "nvidia-smi"
        program.write_text(
            f'#!/bin/sh\ncase "$*" in *--query-gpu=index,uuid*) cat {tmp_path}/gpus ;; '
            f'*"-i 3 --query-compute-apps"*) cat {tmp_path}/apps ;; esac\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (None, "0123"),
        ("3", "3"),
        ("2,0", "20"),
        (" 1 , 2", "12"),
        ("GPU-33", "3"),
        ("1,GPU-00aa,2", "102"),
        ("1,9,2", "1"),
        ("", ""),
        ("-1", ""),
        ("MIG-4711", ""),
    ],
)
def test_what_the_environment_leaves_visible(said: str | None, found: str) -> None:
    assert "".join(visible(said, THERE)) == found


@pytest.mark.parametrize(
    ("named", "count", "environ", "found"),
    [
        ((), 1, {}, ("0",)),
        ((), 1, {"CUDA_VISIBLE_DEVICES": "3"}, ("3",)),
        ((), 2, {"CUDA_VISIBLE_DEVICES": "GPU-33,1,2"}, ("3", "1")),
        (("0",), 1, {"CUDA_VISIBLE_DEVICES": "3"}, ("0",)),
        ((), 1, {"CUDA_VISIBLE_DEVICES": ""}, ()),
    ],
)
def test_the_first_that_are_left_to_us(
    driver: Driver, named: tuple[str, ...], count: int, environ: dict[str, str], found: tuple[str, ...]
) -> None:
    driver("")
    assert chosen(named, count, environ) == found


def test_others_are_not_taken_where_too_few_are_left(driver: Driver) -> None:
    driver("")
    with pytest.raises(DevicesError, match=r"count is 2, .*CUDA_VISIBLE_DEVICES .*1$"):
        chosen((), 2, {"CUDA_VISIBLE_DEVICES": "3"})


def test_a_server_finds_its_gpus_by_the_numbers_of_the_driver() -> None:
    """CUDA by itself begins with the fastest."""
    own = pod.of_servers(devices_of("3"), {})
    assert (own["CUDA_VISIBLE_DEVICES"], own["PACELINE_DEVICES"], own["CUDA_DEVICE_ORDER"]) == ("3", "3", "PCI_BUS_ID")


def test_a_server_reaches_itself_past_any_proxy() -> None:
    own = pod.of_servers(devices_of(), {"http_proxy": "http://proxy:3128", "NO_PROXY": "hub.example"})
    assert own["NO_PROXY"] == own["no_proxy"] == "hub.example,127.0.0.1,localhost"


def devices_of(*numbers: str) -> Machine:
    return replace(HERE, devices=numbers)


def test_who_computes_beside_us_is_named(driver: Driver) -> None:
    driver("/usr/bin/python3, 61234 MiB\nollama, 5000 MiB\n")
    assert other_programs(("3",)) == ("ollama (5000 MiB)", "python3 (61234 MiB)")
    assert other_programs(("2",)) == other_programs(()) == ()


def test_without_a_driver_nobody_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (chosen((), 2, {}), other_programs(("0",))) == ((), ())
    assert devices.VISIBLE == "CUDA_VISIBLE_DEVICES"
