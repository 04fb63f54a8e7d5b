"""The energy counters of NVML, which nvidia-smi does not show. The wrapper runs this with the image's own python3.

Standard input: nvidia-smi's lines, which begin with the GPU's uuid; first argument: pid of the arm's server, "" if none
runs. Prints the fields' names, then a line a GPU: its uuid, the millijoules since the driver was loaded, and why that
is not the arm's own energy, if it is not. NVML makes no CUDA context and changes nothing.
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

ENABLED = 1
USED = 128 << 20
"""Bytes of a GPU in use without a server: the driver's own are fewer, a CUDA context's more."""
MOST_PROCESSES = 512


class Memory(ctypes.Structure):
    """nvmlMemory_v2_t; unlike the first version, `used` leaves out what the driver reserves."""

    _fields_ = [
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    ]


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t of the functions that end in _v3."""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2)]


def main() -> None:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    if nvml.nvmlInit_v2():
        return
    print("uuid,energy,shared")
    for line in sys.stdin:
        uuid, device = line.partition(",")[0].strip(), ctypes.c_void_p()
        if not nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)):
            energy = ctypes.c_ulonglong()
            known = not nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(energy))
            print(f"{uuid},{energy.value if known else ''},{shared(nvml, device, sys.argv[1])}")
    nvml.nvmlShutdown()


def shared(nvml: Any, device: ctypes.c_void_p, server: str) -> str:
    """With whom the GPU is shared; "" with nobody, as far as a container can see."""
    mode, pending = ctypes.c_uint(), ctypes.c_uint()
    if not nvml.nvmlDeviceGetMigMode(device, ctypes.byref(mode), ctypes.byref(pending)) and mode.value == ENABLED:
        return "MIG"
    if os.environ.get("CUDA_MPS_PIPE_DIRECTORY"):
        return "MPS"
    for kind in ("Compute", "Graphics", "MPSCompute"):
        found, count = (ProcessInfo * MOST_PROCESSES)(), ctypes.c_uint(MOST_PROCESSES)
        failed = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")(device, ctypes.byref(count), found)
        if not failed and not all(of_the_server(str(one.pid), server) for one in found[: count.value]):
            return "processes"
    memory = Memory(version=ctypes.sizeof(Memory) | 2 << 24)
    if not server and not nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory)) and memory.used > USED:
        return "memory"
    return ""


def of_the_server(pid: str, server: str) -> bool:
    """Whether it is of the server's group or session. With a server, a pid that is none of this container's may be the
    server's own, as the node counts: then nobody can tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return bool(server)
    _state, _parent, group, session, *_ = stat.rpartition(")")[2].split()
    return bool(server) and server in (pid, group, session)


if __name__ == "__main__":
    main()
