"""When each alert of charts/paceline/files/alerts.yaml fires, and when it does not: series a minute, as promtool writes
them ("0x10" is eleven zeros, "0+3x60" grows by three)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    alert: str
    story: str
    series: Mapping[str, str]
    at: str
    """When it is looked: minutes after the first sample. Of an alert that fires, the first minute in which it does."""
    fires: str = ""
    """Labels of the one alert that fires then, without its name; "": none does."""
    summary: str = ""
    """Of an alert whose words name what it is about."""


OF = 'namespace="paceline-system",pod="paceline-0"'
MODEL = 'namespace="models",name="served"'
EVERY_TWO_HOURS = "0x119 7200x119 14400x119 21600x119"
LEADING = {f"paceline_leading{{{OF}}}": "1x600"}


def condition(kind: str, values: str, of: str = MODEL) -> dict[str, str]:
    return {f'paceline_condition{{kind="speculativedeployments",type="{kind}",{of}}}': values}


CASES = (
    Case("PacelineOperatorAbsent", "nothing was ever read", {"up": "1x30"}, "10m", 'severity="critical"'),
    Case(
        "PacelineOperatorAbsent",
        "it went away",
        {f"paceline_leading{{{OF}}}": "1x5 _x30"},
        "21m",
        'severity="critical"',
    ),
    Case("PacelineOperatorAbsent", "a roll-out", {f"paceline_leading{{{OF}}}": "1x5 _x8 0 1x30"}, "14m"),
    Case(
        "PacelineNotLeading",
        "two stand by",
        {f"paceline_leading{{{OF}}}": "0x30", 'paceline_leading{namespace="paceline-system",pod="paceline-1"}': "0x30"},
        "5m",
        'namespace="paceline-system",severity="critical"',
        "No Paceline operator in paceline-system holds the Lease",
    ),
    Case(
        "PacelineNotLeading",
        "one works, one stands by",
        {**LEADING, 'paceline_leading{namespace="paceline-system",pod="paceline-1"}': "0x30"},
        "20m",
    ),
    Case(
        "PacelineOperatorRestarts",
        "every quarter of an hour",
        {**LEADING, f"process_start_time_seconds{{{OF}}}": "1x14 2x14 3x14 4x14"},
        "45m",
        f'{OF},severity="warning"',
    ),
    Case(
        "PacelineOperatorRestarts",
        "once, for a lease that was lost; and another program over and over",
        {
            **LEADING,
            f"process_start_time_seconds{{{OF}}}": "1x20 2x40",
            'process_start_time_seconds{namespace="models",pod="other"}': "0+1x60",
        },
        "58m",
    ),
    Case(
        "PacelineWatchSilent",
        "of pods, while Jobs are heard",
        {
            f'paceline_watch_silent_seconds{{resource="pods",{OF}}}': "0+60x20",
            f'paceline_watch_silent_seconds{{resource="jobs",{OF}}}': "40x20",
        },
        "8m",
        f'resource="pods",{OF},severity="warning"',
        "The Paceline operator hears nothing of pods",
    ),
    Case(
        "PacelineWatchSilent",
        "as long as a watch lasts",
        {f'paceline_watch_silent_seconds{{resource="pods",{OF}}}': "74x20"},
        "18m",
    ),
    Case(
        "PacelineQueueStuck",
        "no pass ends",
        {f"paceline_queue_stuck_seconds{{{OF}}}": "0+60x10"},
        "6m",
        f'{OF},severity="critical"',
    ),
    Case(
        "PacelineQueueStuck",
        "a long queue whose passes end",
        {f"paceline_queue_stuck_seconds{{{OF}}}": "5x30", f"paceline_queue_oldest_seconds{{{OF}}}": "0+60x30"},
        "20m",
    ),
    Case(
        "PacelineQueueOld",
        "a start with more than it can do",
        {f"paceline_queue_oldest_seconds{{{OF}}}": "0+60x30"},
        "11m",
        f'{OF},severity="warning"',
    ),
    Case("PacelineQueueOld", "a burst", {f"paceline_queue_oldest_seconds{{{OF}}}": "0+60x6 0x20"}, "15m"),
    Case(
        "PacelineReconcileFailures",
        "one object, tried again every six minutes",
        {
            'paceline_reconcile_failures_total{kind="benchmarkruns",error="ValueError"}': " ".join(
                f"{failure}x5" for failure in range(15)
            )
        },
        "57m",
        'kind="benchmarkruns",error="ValueError",severity="warning"',
        "Passes over benchmarkruns fail with ValueError",
    ),
    Case(
        "PacelineReconcileFailures",
        "conflicts and outages, which pass",
        {
            'paceline_reconcile_failures_total{kind="benchmarkruns",error="Conflict"}': "0+5x90",
            'paceline_reconcile_failures_total{kind="benchmarkruns",error="Unavailable"}': "0+50x90",
        },
        "80m",
    ),
    Case(
        "PacelineReconcileFailures",
        "an object that was wrong for a moment",
        {'paceline_reconcile_failures_total{kind="benchmarkruns",error="Invalid"}': "0 1x5 5x90"},
        "60m",
    ),
    Case(
        "PacelineApiErrors",
        "a tenth of the writes has no answer",
        {
            f'paceline_api_requests_total{{method="GET",code="200",{OF}}}': "0+80x60",
            f'paceline_api_requests_total{{method="PATCH",code="200",{OF}}}': "0+10x60",
            f'paceline_api_requests_total{{method="PATCH",code="0",{OF}}}': "0+10x60",
        },
        "11m",
        f'{OF},severity="warning"',
    ),
    Case(
        "PacelineApiErrors",
        "conflicts, and one in a hundred that fails",
        {
            f'paceline_api_requests_total{{method="GET",code="200",{OF}}}': "0+89x60",
            f'paceline_api_requests_total{{method="PATCH",code="409",{OF}}}': "0+10x60",
            f'paceline_api_requests_total{{method="PATCH",code="503",{OF}}}': "0+1x60",
        },
        "30m",
    ),
    Case(
        "PacelineApiForbidden",
        "a right is missing",
        {f'paceline_api_requests_total{{method="GET",code="403",{OF}}}': "0+2x60"},
        "16m",
        f'method="GET",code="403",{OF},severity="warning"',
    ),
    Case(
        "PacelineApiForbidden",
        "once, as a role was being replaced",
        {f'paceline_api_requests_total{{method="GET",code="403",{OF}}}': "0x5 1x60"},
        "19m",
    ),
    Case(
        "PacelineApiForbidden",
        "not found",
        {f'paceline_api_requests_total{{method="GET",code="404",{OF}}}': "0+2x60"},
        "20m",
    ),
    Case(
        "PacelineWritesWithoutEnd",
        "twice a second, for ever",
        {f"paceline_busiest_object_writes{{{OF}}}": "1200x60"},
        "30m",
        f'{OF},severity="warning"',
    ),
    Case(
        "PacelineWritesWithoutEnd",
        "thirty pools are made at once",
        {f"paceline_busiest_object_writes{{{OF}}}": "210x20 21x60"},
        "50m",
    ),
    Case(
        "PacelineStatusRefused",
        "of one run, over and over",
        {'paceline_status_refusals_total{kind="benchmarkruns"}': "0 4x4 6x4 8x4 9x90"},
        "16m",
        'kind="benchmarkruns",severity="warning"',
    ),
    Case("PacelineStatusRefused", "yesterday", {'paceline_status_refusals_total{kind="benchmarkruns"}': "9x90"}, "80m"),
    Case(
        "PacelineNamespaceClosed",
        "it is gone",
        {
            'paceline_namespace_closed{namespace="team"}': "1x60",
            'paceline_namespace_closed{namespace="models"}': "0x60",
        },
        "15m",
        'namespace="team",severity="warning"',
        "The Paceline operator cannot read namespace team",
    ),
    Case(
        "PacelineNamespaceClosed",
        "it is made a minute after the operator",
        {'paceline_namespace_closed{namespace="team"}': "1 0x60"},
        "30m",
    ),
    Case(
        "PacelineDeploymentNotReady",
        "servers that do not start",
        condition("Ready", "0x60") | condition("Measuring", "0x60"),
        "30m",
        f'{MODEL},severity="warning"',
        "SpeculativeDeployment models/served is not Ready",
    ),
    Case(
        "PacelineDeploymentNotReady",
        "it measures, and serves nothing until there is a verdict",
        condition("Ready", "0x90") | condition("Measuring", "1x90"),
        "80m",
    ),
    Case(
        "PacelineDeploymentNotReady",
        "a roll-out of ten minutes",
        condition("Ready", "1x9 0x10 1x60") | condition("Measuring", "0x90"),
        "60m",
    ),
    Case(
        "PacelineDeploymentStalled",
        "an operator was replaced meanwhile",
        {
            **condition("Stalled", "1x10 _x60", MODEL + ',pod="paceline-0"'),
            **condition("Stalled", "_x10 1x60", MODEL + ',pod="paceline-1"'),
        },
        "15m",
        f'{MODEL},severity="warning"',
    ),
    Case("PacelineDeploymentStalled", "mended in time", condition("Stalled", "1x10 0x60"), "30m"),
    Case(
        "PacelineSpeculationDegraded",
        "a drop",
        condition("SpeculationDegraded", "1x60"),
        "10m",
        f'{MODEL},severity="warning"',
    ),
    Case("PacelineSpeculationDegraded", "as it was measured", condition("SpeculationDegraded", "0x60"), "30m"),
    Case(
        "PacelineRunWithoutProgress",
        "its last round ended six hours ago",
        {'paceline_run_progress_timestamp_seconds{namespace="models",name="run"}': "0x500"},
        "361m",
        'namespace="models",name="run",severity="warning"',
        "BenchmarkRun models/run records no round",
    ),
    Case(
        "PacelineRunWithoutProgress",
        "a round every two hours",
        {'paceline_run_progress_timestamp_seconds{namespace="models",name="run"}': EVERY_TWO_HOURS},
        "470m",
    ),
    Case(
        "PacelineEvidenceStale",
        "for a day",
        {f"paceline_evidence_stale{{{MODEL}}}": "1x1500"},
        "1440m",
        f'{MODEL},severity="info"',
        "models/served serves on evidence for an earlier question",
    ),
    Case(
        "PacelineEvidenceStale",
        "measured anew within hours",
        {f"paceline_evidence_stale{{{MODEL}}}": "1x300 0x1200"},
        "1450m",
    ),
)
