"""What several boards ask for."""

from collections.abc import Mapping

from dev.dashboards.model import Kind, Panel, Query, Variable

NAMESPACE = Variable(
    name="namespace",
    label="Namespace",
    metric='paceline_condition{kind="speculativedeployments"}',
    of="namespace",
)
OBJECT = 'namespace=~"$namespace"'
"""Of the operator's series about a deployment, a pool or a run: the label is the object's, by honor_labels."""
POOLS = f'{OBJECT},name=~"$deployment",pool=~"$pool"'
SERVERS = 'namespace=~"$namespace",paceline_dev_deployment=~"$deployment",paceline_dev_pool=~"$pool"'
"""Of the engines' series: labels of the pods, by the PodMonitor's podTargetLabels."""

GREEN, RED, ORANGE, BLUE, GREY, PURPLE = "green", "red", "orange", "blue", "#8e8e8e", "purple"


def of_either_engine(sglang: str, vllm: str, *, of: str = SERVERS) -> str:
    """The series of whatever engine serves; names without their prefix."""
    return f'{{__name__=~"sglang:{sglang}|vllm:{vllm}",{of}}}'


def quantile(q: float, sglang: str, vllm: str, by: str = "paceline_dev_pool", *, of: str = SERVERS) -> str:
    """Of a histogram's buckets, in its unit."""
    buckets = of_either_engine(f"{sglang}_bucket", f"{vllm}_bucket", of=of)
    return f"histogram_quantile({q}, sum by (le, {by}) (rate({buckets}[$__rate_interval])))"


def number(
    title: str,
    description: str,
    expr: str,
    *,
    unit: str = "short",
    decimals: int | None = None,
    colours: Mapping[float, str] | None = None,
) -> Panel:
    """One value, small enough for six in a row; `colours` as of a Panel."""
    return Panel(
        title=title,
        description=description,
        kind=Kind.NUMBER,
        unit=unit,
        decimals=decimals,
        width=4,
        height=4,
        queries=(Query(expr=expr, now=True),),
        colours=colours or {},
    )
