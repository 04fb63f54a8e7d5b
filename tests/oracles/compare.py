"""`make oracles`: our client beside two others on one stream, and at its limits; writes docs/reports/client.md.

All answers are the same pieces at the same times, so what a client should report is known.
"""

import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracles.clients import CLIENTS, Told, ours
from tests.oracles.stream import Script, streaming

from paceline.evidence.judge import LAG_SECONDS, MOST_CPU, MOST_LAG

REPORT = Path("docs/reports/client.md")
CLOSE = 0.01
SPECULATED: Script = [(2000 + 240 * step + 60 * (step % 3), 1 + step % 4) for step in range(24)]
"""Steps of 120 to 300 ms, each of one to four tokens."""
CONCURRENCY, REQUESTS = 16, 48


@dataclass(frozen=True, slots=True)
class Load:
    """So many requests at once, each of `tokens` single tokens, at so many tokens per second in all."""

    concurrency: int
    speed: float
    tokens: int
    waves: int

    @property
    def script(self) -> Script:
        gap = 1000 * self.concurrency / self.speed
        return [(gap * (number + 1), 1) for number in range(self.tokens)]

    @property
    def request_seconds(self) -> float:
        return self.tokens * self.concurrency / self.speed


LOADS = (Load(1, 200, 400, 5), Load(32, 6400, 400, 5), Load(512, 20_000, 400, 3), Load(4096, 20_000, 100, 2))


def expected() -> Told:
    """Of the script itself, at an endless loop."""
    first, last = SPECULATED[0][0] / 1000, SPECULATED[-1][0] / 1000
    tokens = sum(count for _, count in SPECULATED)
    return Told(
        throughput=CONCURRENCY * tokens / last,
        ttft=first,
        tpot=(last - first) / (tokens - 1),
        gap=(last - first) / (len(SPECULATED) - 1),
    )


def compared(scratch: Path) -> Iterator[tuple[str, Told]]:
    yield "the stream itself", expected()
    for name, client in CLIENTS.items():
        with streaming(SPECULATED) as url:
            folder = scratch / name
            folder.mkdir()
            yield name, client(url, CONCURRENCY, REQUESTS, folder)


def apart(one: Told, other: Told) -> float:
    """The largest difference of two clients in a number, as a fraction."""
    return max(abs(getattr(one, name) / getattr(other, name) - 1) for name in ("throughput", "ttft", "tpot", "gap"))


def measured(scratch: Path) -> Iterator[tuple[Load, Told]]:
    for load in LOADS:
        with streaming(load.script) as url:
            yield load, ours(url, load.concurrency, load.waves * load.concurrency, scratch)


def busy(load: Load, told: Told) -> bool:
    assert told.cpu is not None
    assert told.lag is not None
    return told.cpu > MOST_CPU or told.lag > max(LAG_SECONDS, MOST_LAG * load.request_seconds)


def page(found: dict[str, Told], loads: list[tuple[Load, Told]]) -> Iterator[str]:
    yield "# The client, compared with two others and with its limits\n"
    yield f"Written by `make oracles` on two cores of {platform.machine()}, which also run the server.\n"
    yield f"## One stream, three clients: within {CLOSE:.0%}\n"
    yield (
        f"{REQUESTS} requests, {CONCURRENCY} at once, of {sum(count for _, count in SPECULATED)} tokens each in pieces "
        "of one to four.\nThe server sends all pieces at fixed times.\n"
    )
    yield "| | tokens per second | mean TTFT, ms | mean TPOT, ms | mean gap between pieces, ms | apart from Paceline |"
    yield "|---|---|---|---|---|---|"
    for name, told in found.items():
        numbers = f"{told.throughput:.2f} | {1000 * told.ttft:.2f} | {1000 * told.tpot:.2f} | {1000 * told.gap:.2f}"
        yield f"| {name} | {numbers} | {apart(told, found['Paceline']):.2%} |"
    yield "\n## How busy it is\n"
    yield (
        "One token per piece, as a baseline sends it. A point is invalid beyond "
        f"{MOST_CPU:.0%} of a CPU,\nor if an event waits for longer than {1000 * LAG_SECONDS:g} ms and than "
        f"{MOST_LAG:.0%} of a request.\n"
    )
    yield "| requests at once | tokens per second sent | measured | of a CPU | an event waits, ms | may wait, ms |"
    yield "|---|---|---|---|---|---|"
    for load, told in loads:
        may = 1000 * max(LAG_SECONDS, MOST_LAG * load.request_seconds)
        yield (
            f"| {load.concurrency} | {load.speed:g} | {told.throughput:.0f} | {told.cpu:.0%} | "
            f"{1000 * (told.lag or 0.0):.1f} | {may:.0f} |"
        )


def main(write: bool) -> int:
    with TemporaryDirectory() as scratch:
        found = dict(compared(Path(scratch)))
        loads = list(measured(Path(scratch)))
    text = "\n".join(page(found, loads)) + "\n"
    print(text)
    wrong = [f"{name} is {apart(told, found['Paceline']):.1%} apart" for name, told in found.items()
             if apart(told, found["Paceline"]) > CLOSE]  # fmt: skip
    wrong += [f"too busy at {load.concurrency}: {told}" for load, told in loads if busy(load, told)]
    if wrong:
        print(json.dumps(wrong, indent=1), file=sys.stderr)
        return 1
    if write:
        REPORT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
