"""The operator itself: the numbers behind its alerts."""

from dev.dashboards.common import GREEN, GREY, ORANGE, RED, number
from dev.dashboards.model import Annotation, Board, Panel, Query, Row, Variable

PROCESS = 'namespace=~"$namespace",pod=~"$pod"'
"""Labels of the target: series of the process, not of an object."""
OURS = f"and on (namespace, pod) paceline_leading{{{PROCESS}}}"


def healthy(title: str, description: str, expr: str, unit: str = "none", **colours: float) -> Panel:
    """`colours`: from which value on it is orange, and from which red."""
    steps = {value: {"orange": ORANGE, "red": RED}[colour] for colour, value in colours.items()}
    return number(title, description, expr, unit=unit, colours={0: GREEN} | steps)


NOW = Row(
    title="Now",
    panels=(
        number(
            "Leaders",
            "Processes that hold the Lease: one. None: PacelineNotLeading.",
            f"sum(paceline_leading{{{PROCESS}}})",
            unit="none",
            colours={0: RED, 1: GREEN, 2: RED},
        ),
        healthy("Processes", "One leads, the others stand by.", f"count(paceline_leading{{{PROCESS}}})"),
        healthy(
            "Objects that wait",
            "For a pass, in the queue of the leader.",
            f"max(paceline_queue_keys{{{PROCESS}}})",
            orange=100,
        ),
        healthy(
            "Longest wait",
            "After 300 s for 5 minutes: PacelineQueueOld.",
            f"max(paceline_queue_oldest_seconds{{{PROCESS}}})",
            "s",
            orange=60,
            red=300,
        ),
        healthy(
            "Without a pass that ended",
            "Although there is work. After 240 s: PacelineQueueStuck; after 300 s the probe fails.",
            f"max(paceline_queue_stuck_seconds{{{PROCESS}}})",
            "s",
            orange=60,
            red=240,
        ),
        healthy(
            "Silent watch",
            "The kind of objects of which nothing was heard for longest; a healthy watch is heard every 75 s. After "
            "300 s: PacelineWatchSilent.",
            f"max(paceline_watch_silent_seconds{{{PROCESS}}})",
            "s",
            orange=120,
            red=300,
        ),
    ),
)

PASSES = Row(
    title="Passes",
    panels=(
        Panel(
            title="Passes",
            description="Per second, by kind of object.",
            unit="ops",
            queries=(
                Query(
                    expr="sum by (kind) (rate(paceline_reconcile_seconds_count[$__rate_interval]))", legend="{{kind}}"
                ),
            ),
        ),
        Panel(
            title="How long a pass takes",
            description="Median and 99th percentile, by kind of object, the API server's answers included.",
            unit="s",
            queries=tuple(
                Query(
                    expr=f"histogram_quantile({q}, sum by (le, kind) "
                    "(rate(paceline_reconcile_seconds_bucket[$__rate_interval])))",
                    legend=f"{{{{kind}}}} {name}",
                )
                for q, name in ((0.5, "p50"), (0.99, "p99"))
            ),
        ),
        Panel(
            title="Passes that raised",
            description="Per second, by class of error. Conflict, NotFound, TooManyRequests and Unavailable pass; of "
            "others more than six an hour: PacelineReconcileFailures.",
            unit="ops",
            queries=(
                Query(
                    expr="sum by (kind, error) (rate(paceline_reconcile_failures_total[$__rate_interval]))",
                    legend="{{kind}} {{error}}",
                ),
            ),
        ),
        Panel(
            title="Queue",
            description="Objects that wait, and how long the first has.",
            width=12,
            queries=(
                Query(expr=f"max by (pod) (paceline_queue_keys{{{PROCESS}}})", legend="{{pod}} objects"),
                Query(expr=f"max by (pod) (paceline_queue_oldest_seconds{{{PROCESS}}})", legend="{{pod}} seconds"),
            ),
        ),
        Panel(
            title="Silence of watches",
            description="Seconds since something was heard of a kind of objects: a saw-tooth of up to 75 s.",
            unit="s",
            width=12,
            queries=(
                Query(expr=f"max by (resource) (paceline_watch_silent_seconds{{{PROCESS}}})", legend="{{resource}}"),
            ),
        ),
    ),
)

SERVER = Row(
    title="The API server",
    panels=(
        Panel(
            title="Requests",
            description="Per second, by method and code; 0 is no answer.",
            unit="reqps",
            queries=(
                Query(
                    expr=f"sum by (method, code) (rate(paceline_api_requests_total{{{PROCESS}}}[$__rate_interval]))",
                    legend="{{method}} {{code}}",
                ),
            ),
        ),
        Panel(
            title="Requests that fail",
            description="Share without an answer, or with 429 or 5xx. Above 5 % for 10 minutes: PacelineApiErrors.",
            unit="percentunit",
            queries=(
                Query(
                    expr="(sum by (pod) (rate(paceline_api_requests_total"
                    f'{{code=~"0|429|5..",{PROCESS}}}[$__rate_interval])) or '
                    f"0 * sum by (pod) (rate(paceline_api_requests_total{{{PROCESS}}}[$__rate_interval]))) / "
                    f"sum by (pod) (rate(paceline_api_requests_total{{{PROCESS}}}[$__rate_interval]))",
                    legend="{{pod}}",
                ),
            ),
        ),
        Panel(
            title="Refused for want of a right",
            description="Answers 401 and 403, per second: PacelineApiForbidden.",
            unit="reqps",
            queries=(
                Query(
                    expr="sum by (method, code) (rate(paceline_api_requests_total"
                    f'{{code=~"401|403",{PROCESS}}}[$__rate_interval]))',
                    legend="{{method}} {{code}}",
                ),
            ),
        ),
        Panel(
            title="Writes",
            description="Per second, by what is written; Events and the Lease do not count.",
            unit="wps",
            queries=(
                Query(
                    expr=f"sum by (resource) (rate(paceline_writes_total{{{PROCESS}}}[$__rate_interval]))",
                    legend="{{resource}}",
                ),
            ),
        ),
        Panel(
            title="Writes of the busiest object",
            description="Within ten minutes. Above 100 for half an hour: PacelineWritesWithoutEnd.",
            unit="none",
            queries=(Query(expr=f"max by (pod) (paceline_busiest_object_writes{{{PROCESS}}})", legend="{{pod}}"),),
        ),
        Panel(
            title="Statuses refused, namespaces closed",
            description="Statuses that the API server refuses for good (PacelineStatusRefused), and namespaces of the "
            "chart that cannot be read (PacelineNamespaceClosed).",
            unit="none",
            queries=(
                Query(
                    expr="sum by (kind) (increase(paceline_status_refusals_total[$__rate_interval]))",
                    legend="refused: {{kind}}",
                ),
                Query(expr="max by (namespace) (paceline_namespace_closed)", legend="closed: {{namespace}}"),
            ),
        ),
    ),
)

MACHINE = Row(
    title="The process",
    panels=(
        Panel(
            title="Processor",
            description="Cores that the process uses.",
            queries=(
                Query(
                    expr=f"sum by (pod) (rate(process_cpu_seconds_total{{{PROCESS}}}[$__rate_interval]) {OURS})",
                    legend="{{pod}}",
                ),
            ),
        ),
        Panel(
            title="Memory",
            description="Resident. What to expect: docs/performance.md.",
            unit="bytes",
            queries=(
                Query(expr=f"sum by (pod) (process_resident_memory_bytes{{{PROCESS}}} {OURS})", legend="{{pod}}"),
            ),
        ),
        Panel(
            title="Open files",
            description="Connections to the API server and to servers included.",
            unit="none",
            queries=(Query(expr=f"sum by (pod) (process_open_fds{{{PROCESS}}} {OURS})", legend="{{pod}}"),),
        ),
    ),
)

BOARD = Board(
    uid="paceline-operator",
    title="Paceline / Operator",
    description="Whether the operator works, and what it costs. What to do when an alert fires: docs/runbook.md.",
    variables=(
        Variable(name="namespace", label="Namespace of the operator", metric="paceline_leading", of="namespace"),
        Variable(name="pod", label="Process", metric='paceline_leading{namespace=~"$namespace"}', of="pod"),
    ),
    rows=(NOW, PASSES, SERVER, MACHINE),
    annotations=(
        Annotation(
            name="Starts",
            expr=f"1000 * max by (pod) (process_start_time_seconds{{{PROCESS}}} {OURS})",
            title="{{pod}} starts",
            text="",
            colour=GREY,
            at_value=True,
        ),
    ),
)  # fmt: skip
