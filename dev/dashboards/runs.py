"""Benchmark runs: what is measured now, what was found, what it cost."""

from dev.dashboards.common import GREEN, GREY, NAMESPACE, OBJECT, ORANGE, RED, number
from dev.dashboards.model import Board, Kind, Line, Panel, Query, Row, Variable

RUNS = f'{OBJECT},name=~"$run"'
CHOSEN = f'{OBJECT},deployment=~"$deployment",pool=~"$pool",name=~"$run"'
OF_RUN = f"max by (namespace, name) (paceline_run_info{{{CHOSEN}}})"


def of_run(metric: str, by: str = "name") -> str:
    """Of the runs of the chosen deployments and pools."""
    return f"max by ({by}) ({metric}{{{RUNS}}} and on (namespace, name) {OF_RUN})"


NOW = Row(
    title="Now",
    panels=(
        number(
            "Under way",
            "Runs without an outcome, suspended ones and those that wait included.",
            f'count(max by (namespace, name) (paceline_run_info{{{CHOSEN},outcome=""}})) or vector(0)',
            unit="none",
        ),
        Panel(
            title="Outcomes",
            description="Of the runs that have ended and are kept. Error is a failure to measure, and says nothing of "
            "the candidates.",
            kind=Kind.NUMBER,
            unit="none",
            width=8,
            height=4,
            queries=(
                Query(
                    expr=f'sum by (outcome) (max by (namespace, name, outcome) (paceline_run_info{{{CHOSEN},outcome!=""'
                    "}))",
                    legend="{{outcome}}",
                    now=True,
                ),
            ),
        ),
        number(
            "Accelerator hours",
            "Of the runs that are kept.",
            f"sum({of_run('paceline_run_accelerator_seconds', 'namespace, name')}) / 3600",
            unit="h",
            decimals=1,
        ),
        number(
            "Idle share",
            "Part of the accelerators' time that was neither a server's start nor a measured workload: "
            "pulls, warm-ups, the client's own work, failures.",
            f"sum({of_run('paceline_run_idle_accelerator_seconds', 'namespace, name')}) / "
            f"sum({of_run('paceline_run_accelerator_seconds', 'namespace, name')})",
            unit="percentunit",
            decimals=0,
            colours={0: GREEN, 0.3: ORANGE, 0.6: RED},
        ),
        number(
            "Longest without a round",
            "Of the runs that should go on. After six hours: the alert PacelineRunWithoutProgress.",
            f"max(time() - {of_run('paceline_run_progress_timestamp_seconds', 'namespace, name')})",
            unit="s",
            colours={0: GREEN, 3600: ORANGE, 21600: RED},
        ),
    ),
)

FOUND = Row(
    title="What was found",
    panels=(
        Panel(
            title="Runs",
            description="Each candidate of each run: its output throughput over the baseline's, and the bounds of its "
            "confidence interval. A verdict is the gate's, not this table's. A search, which promotes nothing, has no "
            "ratios here.",
            kind=Kind.TABLE,
            width=24,
            height=9,
            queries=(
                Query(
                    expr=f"max by (namespace, name, deployment, pool, purpose, outcome) (paceline_run_info{{{CHOSEN}}})"
                ),
                Query(expr=of_run("paceline_run_speedup_ratio", "namespace, name, arm")),
                Query(expr=of_run("paceline_run_speedup_lower_ratio", "namespace, name, arm")),
                Query(expr=of_run("paceline_run_speedup_upper_ratio", "namespace, name, arm")),
                Query(expr=of_run("paceline_run_rounds", "namespace, name")),
                Query(expr=of_run("paceline_run_accelerator_seconds", "namespace, name")),
            ),
            columns={
                "namespace": "Namespace",
                "name": "Run",
                "deployment": "Deployment",
                "pool": "Pool",
                "purpose": "Purpose",
                "outcome": "Outcome",
                "arm": "Candidate",
                "Value #B": "Ratio",
                "Value #C": "Lower",
                "Value #D": "Upper",
                "Value #E": "Rounds",
                "Value #F": "Accelerator time",
            },
            units={"Ratio": "x", "Lower": "x", "Upper": "x", "Rounds": "none", "Accelerator time": "s"},
            link="paceline-deployment",
        ),
    ),
)

COURSE = Row(
    title="Course",
    panels=(
        Panel(
            title="Speed-up, look by look",
            description="Of each candidate with the bounds of its confidence interval, as of the gate's latest look. "
            "Choose one run. Dashed grey, the baseline.",
            unit="x",
            decimals=3,
            least=None,
            width=12,
            height=9,
            queries=(
                Query(expr=of_run("paceline_run_speedup_ratio", "name, arm"), legend="{{name}} {{arm}}"),
                Query(expr=of_run("paceline_run_speedup_upper_ratio", "name, arm"), legend="{{name}} {{arm}} upper"),
                Query(expr=of_run("paceline_run_speedup_lower_ratio", "name, arm"), legend="{{name}} {{arm}} lower"),
                Query(expr="vector(1)", legend="baseline"),
            ),
            lines=(
                Line(legend=".* upper", colour=GREEN),
                Line(legend=".* lower", colour=ORANGE),
                Line(legend="baseline", colour=GREY),
            ),
        ),
        Panel(
            title="Rounds recorded",
            description="Of each run, failed ones included.",
            unit="none",
            decimals=0,
            width=6,
            height=9,
            queries=(Query(expr=of_run("paceline_run_rounds"), legend="{{name}}"),),
        ),
        Panel(
            title="Time since the last round",
            description="Of the runs that should go on; without a line all have ended, are suspended, or are outside "
            "of their window.",
            unit="s",
            width=6,
            height=9,
            queries=(Query(expr=f"time() - {of_run('paceline_run_progress_timestamp_seconds')}", legend="{{name}}"),),
        ),
        Panel(
            title="Accelerator time, used and idle",
            description="Accelerators times seconds that the runs have held so far.",
            unit="s",
            width=24,
            height=8,
            queries=(
                Query(expr=of_run("paceline_run_accelerator_seconds"), legend="{{name}}"),
                Query(expr=of_run("paceline_run_idle_accelerator_seconds"), legend="{{name}} idle"),
            ),
            lines=(Line(legend=".* idle", colour=ORANGE),),
        ),
    ),
)

BOARD = Board(
    uid="paceline-runs",
    title="Paceline / Benchmark runs",
    description="What is measured, what was found, and what it cost in accelerators.",
    variables=(
        NAMESPACE,
        Variable(
            name="deployment", label="Deployment", metric=f"paceline_run_info{{{OBJECT}}}", of="deployment"
        ),
        Variable(
            name="pool",
            label="Pool",
            metric=f'paceline_run_info{{{OBJECT},deployment=~"$deployment"}}',
            of="pool",
        ),
        Variable(
            name="run",
            label="Run",
            metric=f'paceline_run_info{{{OBJECT},deployment=~"$deployment",pool=~"$pool"}}',
            of="name",
        ),
    ),
    rows=(NOW, FOUND, COURSE),
    since="now-24h",
)  # fmt: skip
