"""All deployments: what serves, what it gains, what needs somebody."""

from dev.dashboards.common import BLUE, GREEN, NAMESPACE, OBJECT, ORANGE, RED, number, of_either_engine
from dev.dashboards.model import Board, Kind, Panel, Query, Row

DEPLOYMENTS = f'kind="speculativedeployments",{OBJECT}'
SERVERS = 'namespace=~"$namespace",paceline_dev_deployment!=""'
LATEST = f"max by (namespace, name, pool, arm, change) (paceline_pool_changed_timestamp_seconds{{{OBJECT}}})"
SPECULATING = (
    f'max by (namespace, name, pool) (paceline_pool_changed_timestamp_seconds{{{OBJECT},arm!~"baseline|nothing"}})'
)
SPEEDUP = f"max by (namespace, name, pool) (paceline_pool_speedup_ratio{{{OBJECT}}})"


def counted(title: str, condition: str, description: str, colour: str = RED) -> Panel:
    """Deployments of which a condition is True."""
    by_object = f'max by (namespace, name) (paceline_condition{{{DEPLOYMENTS},type="{condition}"}})'
    return number(title, description, f"sum({by_object})", colours={0: GREEN, 1: colour})


SUMMARY = Row(
    title="Now",
    panels=(
        number(
            "Deployments",
            "SpeculativeDeployments that the operator has looked at.",
            f'count(max by (namespace, name) (paceline_condition{{{DEPLOYMENTS},type="Ready"}}))',
        ),
        Panel(
            title="Pools",
            description="How many there are, and how many of them serve a candidate rather than the baseline.",
            kind=Kind.NUMBER,
            unit="none",
            width=4,
            height=4,
            queries=(
                Query(expr=f"count({SPECULATING}) or vector(0)", legend="speculate", now=True),
                Query(expr=f"count({LATEST})", legend="in all", now=True),
            ),
        ),
        number(
            "Speed-up, geometric mean of pools",
            "Geometric mean of output throughput over the baseline's, as the pools' evidence shows; a pool "
            "that serves the baseline counts as 1. It is what was measured, not what is served now.",
            f"exp(avg(ln({SPEEDUP})))",
            unit="x",
            decimals=2,
        ),
        counted("Degraded", "SpeculationDegraded", "Speculation does not pay as measured: a pool hangs, accepts less "
                "than its evidence expects, is beyond its crossover, or has fallen back. Alert: "
                "PacelineSpeculationDegraded.", ORANGE),
        counted("Stalled", "Stalled", "They do not go on by themselves; the condition's message says what a person has "
                "to do. Alert: PacelineDeploymentStalled."),
        counted("Measuring", "Measuring", "A run of theirs takes accelerators now.", BLUE),
    ),
)  # fmt: skip

POOLS = Row(
    title="Pools",
    panels=(
        Panel(
            title="What serves",
            description="Each pool: the arm that it serves and how that was chosen, its speed-up according to its "
            "evidence, its ready servers, tokens per verify step of the last window and what the evidence expects of "
            "them. Red and first: a deployment whose SpeculationDegraded is True. A click on a deployment opens its "
            "dashboard.",
            kind=Kind.TABLE,
            width=24,
            height=9,
            queries=(
                Query(expr=f"1000 * {LATEST}"),
                Query(expr=SPEEDUP),
                Query(expr=f"max by (namespace, name, pool) (paceline_pool_ready_servers{{{OBJECT}}})"),
                Query(expr=f"max by (namespace, name, pool) (paceline_pool_accept_length{{{OBJECT}}})"),
                Query(expr=f"max by (namespace, name, pool) (paceline_pool_accept_length_expected{{{OBJECT}}})"),
                Query(
                    expr=f"0 * max by (namespace, name, pool) (paceline_pool_ready_servers{{{OBJECT}}}) + "
                    "on (namespace, name) group_left () max by (namespace, name) "
                    f'(paceline_condition{{{DEPLOYMENTS},type="SpeculationDegraded"}})'
                ),
            ),
            columns={
                "namespace": "Namespace",
                "name": "Deployment",
                "pool": "Pool",
                "arm": "Serves",
                "change": "Chosen",
                "Value #A": "Since",
                "Value #B": "Speed-up",
                "Value #C": "Servers ready",
                "Value #D": "Tokens per step",
                "Value #E": "Expected",
                "Value #F": "Degraded",
            },
            units={"Since": "dateTimeAsIso", "Speed-up": "x", "Servers ready": "none"},
            words={"0": ("no", "transparent"), "1": ("yes", RED)},
            marked="Degraded",
            decimals=2,
            link="paceline-deployment",
        ),
    ),
)

TRAFFIC = Row(
    title="Traffic and measuring",
    panels=(
        Panel(
            title="Output tokens",
            description="Per second, of all servers of a deployment. SGLang counts a request's tokens when it ends, "
            "vLLM as they are made.",
            unit="suffix:tok/s",
            queries=(
                Query(
                    expr="sum by (namespace, paceline_dev_deployment) (rate("
                    + of_either_engine("generation_tokens_total", "generation_tokens_total", of=SERVERS)
                    + "[$__rate_interval]))",
                    legend="{{namespace}}/{{paceline_dev_deployment}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Requests under way per server",
            description="Mean of the guard's last window, running or waiting; of a deployment the busiest pool.",
            queries=(
                Query(
                    expr=f"max by (namespace, name) (paceline_pool_running_requests{{{OBJECT}}})",
                    legend="{{namespace}}/{{name}}",
                ),
            ),
        ),
        Panel(
            title="Accelerators that measure",
            description="How many are held by benchmark runs, on average: seconds of accelerators per second.",
            queries=(
                Query(
                    expr="sum by (deployment) (rate(paceline_run_accelerator_seconds"
                    f"{{{OBJECT}}}[$__rate_interval]) * on (namespace, name) group_left (deployment) "
                    f"max by (namespace, name, deployment) (paceline_run_info{{{OBJECT}}}))",
                    legend="{{deployment}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Conditions that need somebody",
            description="Deployments, by condition.",
            unit="none",
            decimals=0,
            width=12,
            queries=(
                Query(
                    expr="sum by (type) (max by (namespace, name, type) (paceline_condition"
                    f'{{{DEPLOYMENTS},type=~"SpeculationDegraded|Stalled|Reconciling"}}))',
                    legend="{{type}}",
                ),
                Query(
                    expr=f'sum(1 - max by (namespace, name) (paceline_condition{{{DEPLOYMENTS},type="Ready"}}))',
                    legend="not Ready",
                ),
                Query(
                    expr=f"sum(max by (namespace, name) (paceline_evidence_stale{{{OBJECT}}}))",
                    legend="serves on earlier evidence",
                ),
            ),
        ),
        Panel(
            title="Outcomes of the runs there are",
            description="BenchmarkRuns by outcome; a run under way has none yet. Old ones are deleted "
            "(promotion.revisionHistoryLimit).",
            unit="none",
            decimals=0,
            width=12,
            stacked=True,
            queries=(
                Query(
                    expr='label_replace(sum by (outcome) (max by (namespace, name, outcome) (paceline_run_info'
                    f'{{{OBJECT}}})), "outcome", "under way", "outcome", "^$")',
                    legend="{{outcome}}",
                ),
            ),
        ),
    ),
)  # fmt: skip

BOARD = Board(
    uid="paceline-fleet",
    title="Paceline / Fleet",
    description="What all deployments serve and gain, and which need somebody.",
    variables=(NAMESPACE,),
    rows=(SUMMARY, POOLS, TRAFFIC),
)
