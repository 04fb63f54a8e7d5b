"""sampler.py FILE: a line of CSV every quarter of a second of the first GPU, until it is ended; what FILE has stays.

Seconds since 1970; energy in millijoules since the driver was loaded; power in milliwatts; clocks in MHz; memory in
MiB; degrees Celsius; utilization in percent; NVML's bits of why clocks are held down. Empty: the driver does not tell.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml as nvml

nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
COLUMNS: dict[str, Callable[[], Any]] = {
    "t": lambda: f"{time.time():.2f}",
    "energy_mj": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu),
    "power_mw": lambda: nvml.nvmlDeviceGetPowerUsage(gpu),
    "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "mem_mhz": lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),
    "used_mib": lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).used >> 20,
    "temp_c": lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "util": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "throttle": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
}


def told(column: Callable[[], Any]) -> str:
    try:
        return str(column())
    except nvml.NVMLError:
        return ""


with Path(sys.argv[1]).open("a", buffering=1) as out:
    if not out.tell():
        print(*COLUMNS, sep=",", file=out)
    while True:
        print(*map(told, COLUMNS.values()), sep=",", file=out)
        time.sleep(0.25)
