"""Numbers as Grafana writes them, for the units that our boards use."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime


def shown(value: float, unit: str, decimals: int | None = None, now: float = 0.0) -> str:
    if unit.startswith("suffix:"):
        return f"{_short(value, decimals)} {unit.removeprefix('suffix:')}"
    return UNITS[unit](value, decimals, now)


def _rounded(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _short(value: float, decimals: int | None, _: float = 0.0) -> str:
    for factor, letter in ((1e9, "Bil"), (1e6, "Mil"), (1e3, "K")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {letter}"
    return _rounded(value, decimals)


def _seconds(value: float, decimals: int | None, _: float) -> str:
    steps = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"))
    factor, name = next((step for step in steps if abs(value) >= step[0]), (1, "s"))
    return f"{_rounded(value / factor, decimals)} {name}"


def _bytes(value: float, _: int | None, __: float) -> str:
    return f"{value / 2**20:.0f} MiB"


def _ago(value: float, _: int | None, now: float) -> str:
    seconds = now - value / 1000
    return f"{seconds:.0f} seconds ago" if seconds < 90 else f"{seconds / 60:.0f} minutes ago"


def _suffixed(suffix: str) -> Callable[[float, int | None, float], str]:
    return lambda value, decimals, _: f"{_rounded(value, decimals)} {suffix}"


UNITS: Mapping[str, Callable[[float, int | None, float], str]] = {
    "short": _short,
    "none": lambda value, decimals, _: _rounded(value, decimals if value % 1 else 0),
    "percentunit": lambda value, decimals, _: f"{_rounded(100 * value, decimals)}%",
    "s": _seconds,
    "h": _suffixed("hour"),
    "x": _suffixed("x"),
    "bytes": _bytes,
    "ops": _suffixed("ops/s"),
    "reqps": _suffixed("req/s"),
    "wps": _suffixed("wr/s"),
    "dateTimeFromNow": _ago,
    "dateTimeAsIso": lambda value, _, __: datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
}
