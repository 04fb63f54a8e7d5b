"""One deployment: what it serves, how fast it is, and whether its speculation still pays as measured."""

from dev.dashboards.common import (
    BLUE,
    GREEN,
    GREY,
    NAMESPACE,
    OBJECT,
    ORANGE,
    POOLS,
    RED,
    SERVERS,
    of_either_engine,
    quantile,
)
from dev.dashboards.model import Annotation, Board, Kind, Line, Panel, Query, Row, Variable

NAME = f'{OBJECT},name=~"$deployment"'
SECONDS, PER_SECOND = "s", "suffix:tok/s"


def of_pool(metric: str) -> str:
    """An operator that was replaced leaves its series for five minutes: the two agree."""
    return f"max by (pool) ({metric}{{{POOLS}}})"


TROUBLE = "Stalled|SpeculationDegraded"


def conditions(which: str, types: str) -> str:
    return f'max by (type) (paceline_condition{{kind="speculativedeployments",type{which}"{types}",{NAME}}})'


def rate_of(sglang: str, vllm: str, by: str = "paceline_dev_pool") -> str:
    return f"sum by ({by}) (rate({of_either_engine(sglang, vllm)}[$__rate_interval]))"


def latency(title: str, description: str, *, histogram: str, mean: str) -> Panel:
    """Of the servers' `histogram`, which both engines name alike, and of the operator's `mean`."""
    of_servers = (
        Query(expr=quantile(q, histogram, histogram), legend=f"{{{{paceline_dev_pool}}}} {name}")
        for q, name in ((0.5, "p50"), (0.99, "p99"))
    )
    return Panel(
        title=title,
        description=description,
        unit=SECONDS,
        width=12,
        queries=(
            *of_servers,
            Query(expr=of_pool(mean), legend="{{pool}} mean"),
            Query(expr=of_pool(f"{mean}_expected"), legend="{{pool}} evidence's mean"),
        ),
        lines=(Line(legend=".* evidence's mean", colour=GREY),),
    )


SERVES = Row(
    title="What serves",
    panels=(
        Panel(
            title="Arm",
            description="What each pool serves, and since when.",
            kind=Kind.NUMBER,
            name_first=True,
            unit="dateTimeFromNow",
            width=8,
            height=5,
            queries=(
                Query(
                    expr=f"1000 * max by (pool, arm) (paceline_pool_changed_timestamp_seconds{{{POOLS}}})",
                    legend="{{pool}}: {{arm}}",
                    now=True,
                ),
            ),
        ),
        Panel(
            title="Speed-up by its evidence",
            description="Output throughput of what is served over the baseline's, as measured; 1 for the baseline.",
            kind=Kind.NUMBER,
            unit="x",
            decimals=2,
            width=8,
            height=5,
            queries=(Query(expr=of_pool("paceline_pool_speedup_ratio"), legend="{{pool}}", now=True),),
        ),
        Panel(
            title="Servers ready",
            description="Ready servers of each pool.",
            kind=Kind.NUMBER,
            unit="none",
            width=8,
            height=5,
            queries=(Query(expr=of_pool("paceline_pool_ready_servers"), legend="{{pool}}", now=True),),
            colours={0: RED, 1: GREEN},
        ),
        Panel(
            title="Conditions",
            description="As in status, in red where somebody is needed. What a reason means: docs/states.md.",
            kind=Kind.STATES,
            width=12,
            height=8,
            queries=(
                Query(expr=conditions("=~", "Ready"), legend="{{type}}"),
                Query(expr="2 + " + conditions("=~", TROUBLE), legend="{{type}}"),
                Query(expr="4 + " + conditions("!~", f"Ready|{TROUBLE}"), legend="{{type}}"),
            ),
            words={
                "0": ("no: trouble", RED),
                "1": ("yes: well", GREEN),
                "2": ("no: well", GREEN),
                "3": ("yes: trouble", RED),
                "4": ("no", GREY),
                "5": ("yes", BLUE),
            },
        ),
        Panel(
            title="What the guard finds",
            description="Of each pool, one at a time: AsExpected; Idle (too little traffic to judge); "
            "AcceptanceDropped, Hung, BeyondCrossover, which are reported; Unreadable. docs/guard.md.",
            kind=Kind.STATES,
            width=12,
            height=8,
            queries=(
                Query(
                    expr=f"max by (pool, judgement) (paceline_pool_judgement{{{POOLS}}})",
                    legend="{{pool}}: {{judgement}}",
                ),
            ),
            words={"1": ("found", BLUE)},
        ),
    ),
)

SPEED = Row(
    title="How fast it is",
    panels=(
        Panel(
            title="Output tokens",
            description="Per second, of all servers of a pool. SGLang counts a request's tokens when it ends, vLLM as "
            "they are made.",
            unit=PER_SECOND,
            queries=(
                Query(
                    expr=rate_of("generation_tokens_total", "generation_tokens_total"), legend="{{paceline_dev_pool}}"
                ),
            ),
        ),
        Panel(
            title="Output tokens per server, by arm",
            description="What a server makes a second under the arm that it runs: before and after a promotion, at the "
            "load there was. Only at equal load is it a comparison.",
            unit=PER_SECOND,
            queries=(
                Query(
                    expr="avg by (paceline_dev_pool, paceline_dev_arm) (sum by (pod, paceline_dev_pool, "
                    "paceline_dev_arm) (rate("
                    + of_either_engine("generation_tokens_total", "generation_tokens_total")
                    + "[$__rate_interval])))",
                    legend="{{paceline_dev_pool}}: {{paceline_dev_arm}}",
                ),
            ),
        ),
        Panel(
            title="Requests finished",
            description="Per second, of all servers of a pool.",
            unit="reqps",
            queries=(
                Query(expr=rate_of("num_requests_total", "request_success_total"), legend="{{paceline_dev_pool}}"),
            ),
        ),
        latency(
            "Time to first token",
            "Median and 99th percentile of the servers' histograms; dashed, the mean that the evidence "
            "measured at that load. It grows with the prompts, so it is shown and not judged.",
            histogram="time_to_first_token_seconds",
            mean="paceline_pool_ttft_seconds",
        ),
        latency(
            "Inter-token latency",
            "Median and 99th percentile of the servers' histograms, where a step that brings several "
            "tokens counts them all; the mean per token after the first; dashed, the mean that the evidence measured "
            "at that load.",
            histogram="inter_token_latency_seconds",
            mean="paceline_pool_inter_token_latency_seconds",
        ),
    ),
)

PAYS = Row(
    title="Whether speculation pays as measured",
    panels=(
        Panel(
            title="Tokens per verify step, and the guard's band: $pool",
            description="Of the guard's window: 1 accepts no draft. Dashed, what the evidence expects at that load, "
            "and below it the least that spec.guard.acceptanceDrop allows; under the band in both halves of a window, "
            "the guard reports AcceptanceDropped, or falls back.",
            width=24,
            height=9,
            least=1,
            decimals=2,
            repeat="pool",
            queries=(
                Query(expr=of_pool("paceline_pool_accept_length"), legend="served"),
                Query(expr=of_pool("paceline_pool_accept_length_expected"), legend="expected"),
                Query(expr=of_pool("paceline_pool_accept_length_least"), legend="least"),
            ),
            lines=(Line(legend="expected", colour=BLUE, fill_down_to="least"), Line(legend="least", colour=RED)),
        ),
        Panel(
            title="Requests under way per server, and the crossover",
            description="Mean of the guard's window, running or waiting. Above the dashed line the evidence shows the "
            "baseline to be faster: more replicas, or a pool for that load. No line: no run has found one.",
            width=6,
            queries=(
                Query(expr=of_pool("paceline_pool_running_requests"), legend="{{pool}}"),
                Query(expr=of_pool("paceline_pool_crossover_requests"), legend="{{pool}} crossover"),
            ),
            lines=(Line(legend=".* crossover", colour=ORANGE),),
        ),
        Panel(
            title="Tokens per verify step, by server",
            description="As the servers say: SGLang's own mean of its last steps, vLLM's counters. One server below "
            "the others has another traffic, or a fault.",
            least=1,
            decimals=2,
            width=6,
            queries=(
                Query(
                    expr=f"avg by (pod) (sglang:spec_accept_length{{{SERVERS}}}) or 1 + "
                    f"sum by (pod) (rate(vllm:spec_decode_num_accepted_tokens_total{{{SERVERS}}}[$__rate_interval])) / "
                    f"sum by (pod) (rate(vllm:spec_decode_num_drafts_total{{{SERVERS}}}[$__rate_interval]))",
                    legend="{{pod}}",
                ),
            ),
        ),
        Panel(
            title="Running and waiting, by server",
            description="Requests on each server. A queue that stays says that the pool is too small.",
            width=6,
            queries=(
                Query(
                    expr="sum by (pod) ("
                    + of_either_engine("num_running_reqs", "num_requests_running", of=SERVERS + ',priority=""')
                    + ")",
                    legend="{{pod}} running",
                ),
                Query(
                    expr="sum by (pod) ("
                    + of_either_engine("num_queue_reqs", "num_requests_waiting", of=SERVERS + ',priority=""')
                    + ")",
                    legend="{{pod}} waiting",
                ),
            ),
        ),
        Panel(
            title="Cache of keys and values, by server",
            description="Share in use. A head takes memory of it: near 1, requests are taken back and run again.",
            unit="percentunit",
            most=1,
            width=6,
            queries=(
                Query(
                    expr=f"max by (pod) ({of_either_engine('token_usage', 'kv_cache_usage_perc')})", legend="{{pod}}"
                ),
            ),
        ),
    ),
)

BOARD = Board(
    uid="paceline-deployment",
    title="Paceline / Deployment",
    description="What one deployment serves, how fast, and whether its speculation pays as its evidence says.",
    variables=(
        NAMESPACE,
        Variable(
            name="deployment",
            label="Deployment",
            metric=f'paceline_condition{{kind="speculativedeployments",{OBJECT}}}',
            of="name",
            several=False,
        ),
        Variable(
            name="pool", label="Pool", metric=f"paceline_pool_ready_servers{{{NAME}}}", of="pool"
        ),
    ),
    rows=(SERVES, SPEED, PAYS),
    annotations=(
        Annotation(
            name="Promotions and other changes",
            expr=f"1000 * max by (pool, arm, change) (paceline_pool_changed_timestamp_seconds{{{POOLS}}})",
            title="{{pool}} serves {{arm}}",
            text="{{change}}",
            colour=GREEN,
            at_value=True,
        ),
        Annotation(
            name="Speculation degraded",
            expr=f'max by (name) (paceline_condition{{type="SpeculationDegraded",{NAME}}}) == 1',
            title="Speculation does not pay as measured",
            text="{{name}}",
            colour=RED,
        ),
    ),
)  # fmt: skip
