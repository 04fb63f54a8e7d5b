"""The report as Markdown, for issues and pull requests."""

import re
from collections.abc import Iterator, Sequence

from paceline.core.text import count
from paceline.report import deployment_tables, spent, tables
from paceline.report.deployment_model import DeploymentView
from paceline.report.model import Report, RunView
from paceline.report.sections import sections
from paceline.report.tables import HtmlTable
from paceline.report.text import EMULATED_NOTICE, key_figures, not_measured, schedules

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def markdown(report: Report) -> str:
    lines = [f"# {escaped(report.title)}", ""]
    if report.emulated:
        lines += [f"> **{escaped(EMULATED_NOTICE)}.**", ""]
    for deployment in report.deployments:
        lines += [*_deployment(deployment, report.runs), ""]
    for run in report.runs:
        lines += [*_run(run), ""]
    return "\n".join([*lines, f"Written by Paceline {escaped(report.paceline)}.", ""])


def escaped(text: str) -> str:
    """Escapes the text to one line without markup."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _mark(of: DeploymentView | RunView) -> str:
    return "Emulated: " if of.emulated else ""


def _deployment(of: DeploymentView, runs: Sequence[RunView]) -> Iterator[str]:
    yield from (
        f"## {escaped(f'{of.namespace}/{of.name}')}: {escaped(of.state)}",
        "",
        f"**{_mark(of)}{escaped(deployment_tables.headline(of))}.**",
        "",
    )
    for remark in of.remarks:
        yield f"- {escaped(remark)}"
    yield from ("", *_table(deployment_tables.pools_table(of, runs)))
    for pool in of.pools:
        yield from ("", f"### Pool {escaped(pool.name)}", "", escaped(pool.says))
        if pool.evidence:
            yield from ("", f"Evidence: {escaped(pool.evidence)}")
        if pool.advice:
            yield from ("", f"You can: {escaped(pool.advice)}")
        if pool.progress:
            yield from ("", "Measured now:", "", *(f"- {escaped(line)}" for line in pool.progress))
        if pool.guard:
            yield from ("", f"Guard: {escaped(pool.guard)}")
        if pool.rates:
            yield from ("", *_table(deployment_tables.rates(pool)), "", escaped(deployment_tables.RATES))
        yield from (f"\nNot read: {escaped(why)}" for why in pool.unread)
        if pool.history:
            yield from ("", "#### History", "", *_table(deployment_tables.history_table(pool)))
    yield from ("", "### Conditions", "", *_table(deployment_tables.conditions_table(of)))


def _run(run: RunView) -> Iterator[str]:
    yield from (f"## {escaped(run.pool)}: {escaped(run.decision)}", "", f"**{_mark(run)}{escaped(run.found)}**", "")
    if run.advice:
        yield from (f"{escaped(run.advice)}.", "")
    yield escaped(" · ".join(f"{name} {value}{f' ({note})' if note else ''}" for name, value, note in key_figures(run)))
    yield from ("", "### Speed-up over the baseline", "", escaped(run.asked), "")
    yield from _table(tables.searched_table(run.search) if run.search else tables.speed_ups(run))
    if run.search:
        yield from ("", *map(escaped, not_measured(run.search)))
    for candidate in run.candidates:
        if candidate.outcome and candidate.name != run.winner:
            yield from ("", f"- {escaped(candidate.name)} {escaped(candidate.outcome)}: {escaped(candidate.reason)}")
    if run.crossover:
        yield from ("", "### Over concurrencies", "", escaped(f"{run.crossover.sentence} {run.crossover.numbers}."))
    for one in run.over_loads:
        yield from ("", f"### Tokens per second over concurrency: {escaped(one.dataset)}", "")
        yield from _table(tables.over_loads_table(one))
        yield from (f"\n{escaped(line)}" for line in schedules(one))
    yield from ("", "### Outputs", "", escaped(run.outputs.sentence))
    if run.outputs.arms:
        yield ""
        yield from _table(tables.outputs_table(run))
    yield from ("", "### Throughput, acceptance and latency", "")
    yield from _table(tables.latencies_table(run))
    for section in sections(run):
        yield from ("", f"### {section.heading}", "", section.says, "")
        yield from _table(section.table)
    if run.limits:
        yield from ("", "### Limits", "")
        yield from _table(tables.limits_table(run))
    if run.counts:
        yield from ("", "### Requests over all rounds", "")
        yield from _table(tables.requests_table(run))
    if run.unused or run.notes:
        yield from ("", "### Not used, and notes", "")
        yield from (f"- {escaped(note)}" for note in (*run.unused, *run.notes))
    yield from ("", "### What differs between the arms", "")
    different = (*run.configuration.asked, *run.configuration.resolved)
    rows = [[f"{escaped(one.name)}", *(escaped(value) or "–" for value in one.values)] for one in different]
    arms = run.configuration.arms
    yield from _lines(["", *map(escaped, arms)], ["---"] * (1 + len(arms)), rows)
    yield from ("", f"{count(len(run.configuration.equal), 'argument')} of the servers' own equal on all arms.")
    if run.time:
        yield from ("", "### What the time of a round goes into", "")
        yield from (*_table(spent.time_table(run.time)), "", escaped(spent.time_note(run.time)))
        yield from (f"- {escaped(advice)}" for advice in run.time.advice)
    yield from ("", "### Cost and provenance", "")
    yield from (f"- {escaped(name)}: {escaped(value)}" for name, value in [*tables.costs_table(run), *run.provenance])


def _table(table: HtmlTable) -> Iterator[str]:
    rows = [
        [escaped(cell.text) + (f" ({escaped(cell.note)})" if cell.note else "") for cell in row] for row in table.rows
    ]
    rule = ["---" if column < table.words else "--:" for column in range(len(table.head))]
    return _lines([escaped(name) for name in table.head], rule, rows)


def _lines(head: Sequence[str], rule: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
