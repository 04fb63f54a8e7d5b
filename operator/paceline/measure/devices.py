"""The GPUs of this machine, numbered as by the driver, and those that the user lets us use."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The variable by which users of a shared machine keep to their own GPUs."""
ORDERED = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Makes CUDA number GPUs as the driver does; by default it starts with the fastest."""


APPS = "compute-apps", "name,used_memory"
_LONGEST_NAME = 80
_MOST = 16
"""Maximum number of listed programs, as for neighbours in a cluster."""


class DevicesError(LookupError):
    """The machine lacks the requested GPUs; the text says what to do."""


def chosen(named: Sequence[str], count: int, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Numbers of the GPUs to use: `named`, else the first `count` of those that the environment leaves visible. Empty
    without a driver, or if the environment leaves none. A server gets as many as in a pod."""
    there = _gpus()
    if named and len(named) != count:
        raise DevicesError(f"--devices: names {len(named)}, but spec.accelerator.count is {count}: name as many")
    if unknown := [device for device in named if device not in there]:
        raise DevicesError(f"--devices: the driver has no {', '.join(unknown)}; it has {', '.join(there) or 'none'}")
    left = tuple(visible(environ.get(VISIBLE), there))
    if not named and left and len(left) < count:
        whose = f"{VISIBLE} leaves" if VISIBLE in environ else "the driver has"
        raise DevicesError(f"spec.accelerator.count is {count}, but {whose} only {len(left)}")
    return tuple(named) or left[:count]


def visible(said: str | None, there: Mapping[str, str]) -> Iterator[str]:
    """Numbers of the GPUs in CUDA_VISIBLE_DEVICES, up to the first invalid word, as CUDA reads it. `there`: number →
    UUID."""
    for word in there if said is None else said.split(","):
        number = word.strip()
        if number.startswith("GPU-"):
            number = next((one for one, uuid in there.items() if uuid.startswith(number)), "")
        if number not in there:
            return
        yield number


def other_programs(devices: Sequence[str]) -> tuple[str, ...]:
    """Other programs that compute on these GPUs now, with their memory. Empty without a driver, or if it hides other
    users' processes, as in a container."""
    if not devices:
        return ()
    found = (f"{name.rpartition('/')[2][:_LONGEST_NAME]} ({used})" for name, used in _asked(*APPS, devices))
    return tuple(sorted(found)[:_MOST])


def _gpus() -> dict[str, str]:
    """Number → UUID of the driver's GPUs; none without a driver."""
    return dict(_asked("gpu", "index,uuid"))


def _asked(what: str, fields: str, devices: Sequence[str] = ()) -> list[tuple[str, str]]:
    of = ["-i", ",".join(devices)] if devices else []
    query = ["nvidia-smi", *of, f"--query-{what}={fields}", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = (line.rpartition(",") for line in said.splitlines() if "," in line)
    return [(first.strip(), second.strip()) for first, _, second in rows]
