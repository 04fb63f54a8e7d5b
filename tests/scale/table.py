"""The generated part of docs/performance.md: what the bench has found, beside its goals and a peer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- written by make bench-scale -->\n", "<!-- end of what make bench-scale writes -->\n"
Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Row:
    """`peer`: Argo Rollouts 1.10.1 on this machine, 2026-11-22, at 200 objects."""

    what: str
    peer: str
    goal: str
    text: Callable[[Figures], str]


def plain(name: str, form: str = "{:.0f}") -> Callable[[Figures], str]:
    return lambda figures: form.format(figures[name]) if name in figures else "–"


def pair(first: str, second: str, form: str) -> Callable[[Figures], str]:
    return several((first, second), form)


def several(names: Sequence[str], form: str) -> Callable[[Figures], str]:
    return lambda found: form.format(*map(found.__getitem__, names)) if found.keys() >= {*names} else "–"


ROWS = (
    Row("writes while idle", "0", "0", plain("idle_writes")),
    Row("writes to create one", "8", "≤ 7", plain("create_writes", "{:.1f}")),
    Row("writes per promotion, alone / 20 at once", "18 / 18.9", "≤ 18",
        pair("alone_writes", "together_writes", "{:.0f} / {:.1f}")),
    Row("reads to create one; per promotion of 20", "–", "–",
        pair("create_reads", "together_reads", "{:.1f}; {:.1f}")),
    Row("CPU to create one", "24 ms", "≤ 72 ms", plain("create_cpu_ms", "{:.0f} ms")),
    Row("CPU per promotion, 20 at once", "70 ms", "≤ 210 ms", plain("together_cpu_ms", "{:.0f} ms")),
    Row("… of the API server / of etcd", "–", "–",
        pair("together_api_cpu_ms", "together_etcd_cpu_ms", "{:.0f} / {:.0f} ms")),
    Row("20 promotions at once", "5.8 s", "≤ 10 s",
        pair("together_seconds", "together_load", "{:.1f} s (load {:.0f})")),
    Row("Job complete → next Job, 20 at once, p50 / most", "–", "≤ 1 s",
        pair("together_gap_p50", "together_gap_max", "{:.2f} / {:.2f} s")),
    Row("Job complete → next Job, alone", "–", "–", plain("alone_gap_p50", "{:.2f} s")),
    Row("all others at once: seconds; CPU per promotion", "–", "–",
        pair("all_seconds", "all_cpu_ms", "{:.0f} s; {:.0f} ms")),
    Row("start until all were looked at", "0.65 s", "≤ 2 s at 200",
        pair("start_seconds", "start_load", "{:.1f} s (load {:.0f})")),
    Row("CPU of that start", "0.7 s", "–", plain("start_cpu", "{:.1f} s")),
    Row("start with finished runs: of how many; seconds; CPU", "–", "–",
        several(("finished", "finished_start_seconds", "finished_start_cpu"), "{:,.0f}; {:.1f} s; {:.1f} s")),
    Row("SIGTERM → the next leader acts", "16.8 s", "≤ 2 s",
        pair("handover_seconds", "handover_load", "{:.1f} s (load {:.0f})")),
    Row("a change at 20/s → its write, p50 / p99", "–", "p99 ≤ 0.25 s",
        several(("change_p50", "change_p99", "change_load"), "{:.2f} / {:.2f} s (load {:.0f})")),
    Row("CPU per change; of the API server", "–", "–",
        pair("change_cpu_ms", "change_api_cpu_ms", "{:.1f} ms; {:.1f} ms")),
    Row("CPU while idle", "1 mcore", "–", plain("idle_mcores", "{:.1f} mcores")),
    Row("… with finished runs", "–", "–", plain("finished_idle_mcores", "{:.1f} mcores")),
    Row("resident after a restart", "114 MB",
        "≤ 150 MiB at 1,000; ≤ 400 at 5,000", plain("start_mib", "{:.0f} MiB")),
    Row("… with finished runs", "–", "–", plain("finished_start_mib", "{:.0f} MiB")),
)  # fmt: skip


def markdown(found: Sequence[Figures]) -> str:
    """One column for each size."""
    sizes = [f"{figures['deployments']:,.0f}" for figures in found]
    head = ["deployments", "Argo Rollouts", "goal", *sizes]
    lines = [head, ["---"] * len(head)]
    lines += [[row.what, row.peer, row.goal, *map(row.text, found)] for row in ROWS]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def write(found: Sequence[Figures]) -> None:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    DOCUMENT.write_text(before + BEGIN + "\n" + markdown(found) + "\n" + END + rest.partition(END)[2])
