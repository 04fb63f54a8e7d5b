"""Queries that have no answer while all is well, why, and the series of a story in which they have one."""

from collections.abc import Mapping
from dataclasses import dataclass

OF = 'namespace="models",name="coder"'
PROCESS = 'namespace="paceline-system",pod="paceline-0"'


@dataclass(frozen=True, slots=True)
class Story:
    why: str
    """The query has no answer otherwise."""
    series: Mapping[str, str]
    """As promtool writes them, a value a minute: series → values."""


RUN = 'namespace="models",name="coder-latency-1"'
STORIES: Mapping[str, Story] = {
    "paceline-deployment: Requests under way per server, and the crossover B": Story(
        "no run of these has shown the baseline to be faster at a higher load",
        {f'paceline_pool_crossover_requests{{{OF},pool="latency"}}': "7.5x10"},
    ),
    "paceline-deployment: Speculation degraded": Story(
        "a mark is made while the condition is True",
        {f'paceline_condition{{kind="speculativedeployments",type="SpeculationDegraded",{OF}}}': "0x4 1x6"},
    ),
    "paceline-operator: Passes that raised A": Story(
        "no pass has raised",
        {f'paceline_reconcile_failures_total{{kind="benchmarkruns",error="Invalid",{PROCESS}}}': "0+1x10"},
    ),
    "paceline-operator: Refused for want of a right A": Story(
        "the operator has all rights that it needs",
        {f'paceline_api_requests_total{{method="PATCH",code="403",{PROCESS}}}': "0+2x10"},
    ),
    "paceline-operator: Statuses refused, namespaces closed A": Story(
        "no status was refused",
        {f'paceline_status_refusals_total{{kind="benchmarkruns",{PROCESS}}}': "0+1x10"},
    ),
    "paceline-runs: Time since the last round A": Story(
        "a run has ended before it was read",
        {
            f"paceline_run_progress_timestamp_seconds{{{RUN}}}": "0x10",
            f'paceline_run_info{{{RUN},deployment="coder",pool="latency",purpose="Gate"}}': "1x10",
        },
    ),
    "paceline-runs: Longest without a round A": Story(
        "all runs have ended by then",
        {
            f"paceline_run_progress_timestamp_seconds{{{RUN}}}": "0x10",
            f'paceline_run_info{{{RUN},deployment="coder",pool="latency",purpose="Gate"}}': "1x10",
        },
    ),
}
