"""Tables that a report has only if they have data, each with an explanation."""

from dataclasses import dataclass

from paceline.report.model import RunView
from paceline.report.tables import HtmlTable, TableCell
from paceline.report.text import interval_text, ratio_text, significant


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    heading: str
    says: str
    """What the numbers mean."""
    table: HtmlTable
    caption: str = ""
    """The table's name, if longer than the heading."""


def sections(run: RunView) -> tuple[Section, ...]:
    """The sections with at least one row."""
    every = (
        Section(heading="Fastest arm by dataset", says=CLASSES, table=_classes(run)),
        Section(heading="Acceptance by position", says=POSITIONS, table=_positions(run)),
        Section(heading="Goodput", says=GOODPUT, table=goodput_section(run)),
        Section(heading="Speed-up prompt by prompt", says=_PROMPTS, table=prompts_section(run)),
        Section(heading="Length of the context", says=_CONTEXTS, table=contexts_section(run)),
        Section(heading="Lengths", says=LENGTHS, table=lengths_section(run), caption="Lengths of prompts and answers"),
    )
    return tuple(section for section in every if section.table.rows)


CLASSES = (
    "An arm is best on a dataset if it is shown to be faster there than every other arm; the interval is that over the "
    "arm that comes closest. The intervals of all datasets hold together. They decide nothing: a pool serves one arm "
    "for all its prompts."
)
POSITIONS = (
    "Of an arm's verify steps, how many accepted the first draft token, the second and so on; a step that rejects one "
    "accepts none after it."
)
GOODPUT = (
    "Requests that met the slo, of all that were sent in valid rounds; per second over the client's time, its ramp and "
    "tail included, as vLLM and AIPerf count it. ITL is a request's mean time per token after the first."
)
_PROMPTS = (
    "Output tokens per second of a request, from its sending to its end, over those of the same prompt at the "
    "baseline in the same round. It includes all that happened while the two were under way: even against a server "
    "of equal speed, the worst tenth is below 1x and the best above."
)
_CONTEXTS = (
    "Requests of a conversation follow one another, and the cache has what came before. Tokens per second of a request "
    "count from its sending to its end. A chunk of an answer has the tokens of one step. A point on a workload has the "
    "requests of all lengths; these parts of it decide nothing."
)
LENGTHS = "Tokens as the server counts them, of prompts with its template. Means over rounds."


def _classes(run: RunView) -> HtmlTable:
    """The best arm of each dataset."""
    rows = (
        (
            TableCell(text=one.dataset),
            TableCell(text=one.best or "none"),
            TableCell(text=f"{one.arm} over {one.rival}"),
            TableCell(
                text=ratio_text(one.bounds.ratio) if one.bounds else "–",
                note=interval_text(one.bounds) if one.bounds else "",
            ),
        )
        for one in run.classes
    )
    return HtmlTable(head=("Dataset", "Best arm", "Closest pair", "Ratio"), words=3, rows=tuple(rows))


def _positions(run: RunView) -> HtmlTable:
    """How often a verify step accepted the first draft token, the second, …"""
    most = max((len(one.accepted) for one in run.positions), default=0)
    rows = (
        (
            TableCell(text=one.workload),
            TableCell(text=one.arm),
            *(TableCell(text=f"{share:.0%}") for share in one.accepted),
            *(TableCell(text="–") for _ in range(most - len(one.accepted))),
        )
        for one in run.positions
    )
    head = ("Workload", "Arm", *(str(position + 1) for position in range(most)))
    return HtmlTable(head=head, words=2, rows=tuple(rows))


def goodput_section(run: RunView) -> HtmlTable:
    """Requests that met the slo, and requests sent."""
    rows = (
        (
            TableCell(text=one.workload),
            TableCell(text=one.arm),
            TableCell(text=one.slo),
            TableCell(text=f"{one.good / one.asked:.1%}" if one.asked else "–", note=f"{one.good:,} of {one.asked:,}"),
            _plain(one.requests),
            _plain(one.tokens),
        )
        for one in run.goodput
    )
    head = ("Workload", "Arm", "SLO", "Requests that met it", "Goodput, requests/s", "Goodput, tokens/s")
    return HtmlTable(head=head, words=3, rows=tuple(rows))


def prompts_section(run: RunView) -> HtmlTable:
    """The spread between prompts, which a mean hides."""
    rows = (
        (
            TableCell(text=one.workload),
            TableCell(text=one.arm),
            TableCell(text=ratio_text(one.worst)),
            TableCell(text=ratio_text(one.median)),
            TableCell(text=ratio_text(one.best)),
            TableCell(text="–" if one.slower is None else f"{one.slower:.0%}"),
        )
        for one in run.prompts
    )
    head = ("Worst tenth, at most", "Median prompt", "Best tenth, at least", "Slower than the baseline")
    return HtmlTable(head=("Workload", "Arm", *head), words=2, rows=tuple(rows))


def contexts_section(run: RunView) -> HtmlTable:
    """Results by the length of prompts, in tokens."""
    rows = (
        (
            TableCell(text=one.workload),
            TableCell(text=f"from {one.over:,}"),
            TableCell(text=one.arm),
            TableCell(text=f"{one.requests:,}"),
            _plain(one.speed),
            TableCell(text=ratio_text(one.ratio) if one.ratio else "–"),
            TableCell(text="–" if one.ttft is None else f"{significant(1000 * one.ttft)} ms"),
            _plain(one.tokens_per_chunk),
        )
        for one in run.contexts
    )
    head = ("Requests", "Tokens/s of a request", "Over the baseline", "TTFT mean", "Tokens a chunk")
    return HtmlTable(head=("Workload", "Prompt tokens", "Arm", *head), words=3, rows=tuple(rows))


def lengths_section(run: RunView) -> HtmlTable:
    """Lengths of prompts and answers, in tokens."""
    rows = (
        (TableCell(text=one.workload), TableCell(text=one.arm), *map(_plain, (*one.prompt, *one.answer)))
        for one in run.lengths
    )
    head = tuple(f"{of} {stat}" for of in ("Prompt", "Answer") for stat in ("mean", "p50", "p99"))
    return HtmlTable(head=("Workload", "Arm", *head), words=2, rows=tuple(rows))


def _plain(value: float | None) -> TableCell:
    return TableCell(text="–" if value is None else "0" if value == 0 else significant(value))
