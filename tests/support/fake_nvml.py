"""An NVML of Python: as an image's python3 it runs the wrapper's program with a library that reads a file's GPUs.

`python3_with` makes a directory for PATH; `write` says how the GPUs are, in order: at each reading a counter grows by
its `watts` times 1000 mJ. `energy: None` is a driver that does not support it.
"""

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

NOT_SUPPORTED, NOT_FOUND = 3, 6


def python3_with(directory: Path, **gpus: dict[str, Any]) -> Path:
    """A directory with this `python3`, and these GPUs in its `gpus.json`."""
    directory.mkdir(exist_ok=True)
    program = directory / "python3"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {directory / "gpus.json"} "$@"\n')
    program.chmod(0o755)
    write(directory, **gpus)
    return directory


def write(directory: Path, **gpus: dict[str, Any]) -> None:
    (directory / "gpus.json").write_text(json.dumps({name.replace("_", "-"): gpu for name, gpu in gpus.items()}))


class FakeNvml:
    """The functions that the program calls. A handle is the GPU's place, from 1."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.gpus: dict[str, dict[str, Any]] = json.loads(file.read_text())

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("nvmlDeviceGet").removesuffix("RunningProcesses_v3")
        return lambda device, count, found: self.processes(self.of(device), kind, count, found)

    def of(self, device: ctypes.c_void_p) -> dict[str, Any]:
        return list(self.gpus.values())[(device.value or 0) - 1]

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0 if self.gpus else NOT_FOUND

    def nvmlShutdown(self) -> int:  # noqa: N802
        self.file.write_text(json.dumps(self.gpus))
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, device: Any) -> int:  # noqa: N802
        if uuid.decode() not in self.gpus:
            return NOT_FOUND
        device._obj.value = 1 + list(self.gpus).index(uuid.decode())
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, device: ctypes.c_void_p, energy: Any) -> int:  # noqa: N802
        gpu = self.of(device)
        if gpu.get("energy") is None:
            return NOT_SUPPORTED
        energy._obj.value = gpu["energy"]
        gpu["energy"] += 1000 * gpu.get("watts", 0)
        return 0

    def nvmlDeviceGetMigMode(self, device: ctypes.c_void_p, mode: Any, pending: Any) -> int:  # noqa: N802
        gpu = self.of(device)
        if "mig" not in gpu:
            return NOT_SUPPORTED
        mode._obj.value = pending._obj.value = gpu["mig"]
        return 0

    def nvmlDeviceGetMemoryInfo_v2(self, device: ctypes.c_void_p, memory: Any) -> int:  # noqa: N802
        assert memory._obj.version == 0x2000028, "nvmlMemory_v2"
        memory._obj.used = self.of(device).get("memory", 4) << 20
        return 0

    @staticmethod
    def processes(gpu: dict[str, Any], kind: str, count: Any, found: Any) -> int:
        pids = gpu.get(kind, [])
        count._obj.value = len(pids)
        for place, pid in enumerate(pids):
            found[place].pid = pid
        return 0


if __name__ == "__main__":
    _, gpus, *arguments = sys.argv
    assert arguments[:3] == ["-I", "-S", "-c"], arguments
    library = FakeNvml(Path(gpus))
    ctypes.CDLL = lambda name: {"libnvidia-ml.so.1": library}[name]  # type: ignore[assignment, misc]
    sys.argv = ["-c", *arguments[4:]]
    exec(compile(arguments[3], "energy.py", "exec"), {"__name__": "__main__"})
