"""A board as Grafana reads it, by Grafana's own SDK (its version in pyproject.toml is the oldest Grafana meant)."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dev.dashboards.model import Annotation, Board, Kind, Line, Panel, Query, Variable
from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Builder = timeseries.Panel | statetimeline.Panel | stat.Panel | table.Panel
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "paceline"
LETTERS = "ABCDEFGHIJ"


def as_json(board: Board) -> str:
    """The file, which Grafana's import, its provisioning and its sidecar all read."""
    made: dict[str, Any] = json.loads(json.dumps(_dashboard(board).build(), cls=JSONEncoder))
    made["annotations"] = {"list": [*made["annotations"]["list"], *map(_annotation, board.annotations)]}
    return json.dumps(made, indent=1, sort_keys=True) + "\n"


def _dashboard(board: Board) -> dashboard.Dashboard:
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags([TAG])
        .time(board.since, "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .editable()
        .annotations([])
        .link(_others())
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for variable in board.variables:
        made.with_variable(_variable(variable))
    number = 0
    for row in board.rows:
        number += 1
        made.with_row(dashboard.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            made.with_panel(_panel(panel).id(number))
    return made


def _others() -> dashboard.DashboardLink:
    """A way to the other boards, with what was chosen here."""
    link = dashboard.DashboardLink("Paceline").type(models.DashboardLinkType.DASHBOARDS).tags([TAG])
    return link.as_dropdown(True).include_vars(True).keep_time(True)


def _variable(variable: Variable) -> dashboard.QueryVariable:
    made = (
        dashboard.QueryVariable(variable.name)
        .label(variable.label)
        .datasource(SOURCE)
        .query({"query": f"label_values({variable.metric}, {variable.of})", "refId": variable.name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )
    if variable.several:
        made.multi(True).include_all(True).all_value(".*")
        made.current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    return made


def _annotation(annotation: Annotation) -> dict[str, Any]:
    """Grafana's data source for Prometheus reads more of it than the SDK knows."""
    return {
        "datasource": SOURCE.to_json(),
        "enable": True,
        "expr": annotation.expr,
        "iconColor": annotation.colour,
        "name": annotation.name,
        "step": "60s",
        "textFormat": annotation.text,
        "titleFormat": annotation.title,
        "useValueForTime": annotation.at_value,
    }


def _panel(panel: Panel) -> Builder:
    made = OF_KIND[panel.kind](panel)
    made.title(panel.title).description(panel.description).datasource(SOURCE).unit(panel.unit)
    made.span(panel.width).height(panel.height)
    for letter, query in zip(LETTERS, panel.queries, strict=False):
        made.with_target(_query(letter, query, table=panel.kind is Kind.TABLE))
    if panel.decimals is not None:
        made.decimals(panel.decimals)
    if panel.least is not None and panel.kind is Kind.LINES:
        made.min(panel.least)
    if panel.most is not None:
        made.max(panel.most)
    if panel.repeat:
        made.repeat(panel.repeat).repeat_direction("h").max_per_row(3)
    steps = [models.Threshold(value=value, color=colour) for value, colour in panel.colours.items()]
    if steps:
        steps[0].value = None
        made.thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        made.color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
    if panel.words and not panel.marked:
        made.mappings([_words(panel)])
    return made


def _words(panel: Panel) -> models.ValueMap:
    shown = {
        value: models.ValueMappingResult(text=word, color=colour, index=index)
        for index, (value, (word, colour)) in enumerate(panel.words.items())
    }
    return models.ValueMap(options=shown)


def _query(letter: str, query: Query, *, table: bool) -> prometheus.Dataquery:
    made = prometheus.Dataquery().ref_id(letter).expr(query.expr).datasource(SOURCE)
    if query.legend:
        made.legend_format(query.legend)
    if table:
        made.format(PromQueryFormat.TABLE)
    return made.instant() if table or query.now else made.range()


def _lines(panel: Panel) -> timeseries.Panel:
    made = (
        timeseries.Panel()
        .line_width(1.5)
        .fill_opacity(8)
        .show_points(shapes.VisibilityMode.NEVER)
        .legend(_legend())
        .tooltip(_tooltip())
    )
    if panel.stacked:
        made.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL)).fill_opacity(35)
    for line in panel.lines:
        made.override_by_regexp(f"/^{line.legend}$/", list(_drawn(line)))
    return made


def _drawn(line: Line) -> Iterator[models.DynamicConfigValue]:
    yield models.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": line.colour})
    yield models.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [6, 4]})
    yield models.DynamicConfigValue(id_val="custom.fillOpacity", value=20 if line.fill_down_to else 0)
    if line.fill_down_to:
        yield models.DynamicConfigValue(id_val="custom.fillBelowTo", value=line.fill_down_to)


def _states(_: Panel) -> statetimeline.Panel:
    made = statetimeline.Panel().merge_values(True).show_value(shapes.VisibilityMode.NEVER).row_height(0.8)
    return made.legend(_legend()).tooltip(_tooltip())


def _number(panel: Panel) -> stat.Panel:
    made = stat.Panel().graph_mode(shapes.BigValueGraphMode.NONE)
    made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    named = any(query.legend for query in panel.queries)
    if panel.name_first:
        made.text(common.VizTextDisplayOptions().title_size(28).value_size(14))
    made.text_mode(shapes.BigValueTextMode.VALUE_AND_NAME if named else shapes.BigValueTextMode.VALUE)
    coloured = shapes.BigValueColorMode.VALUE if panel.colours else shapes.BigValueColorMode.NONE
    return made.color_mode(coloured).no_value("–")


def _table(panel: Panel) -> table.Panel:
    made = table.Panel().no_value("–").filterable(True)
    names = list(panel.columns)
    made.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    values = [f"Value #{letter}" for letter, _ in zip(LETTERS, panel.queries, strict=False)]
    organised = {
        "excludeByName": {"Time": True} | {value: True for value in values if value not in panel.columns},
        "indexByName": {name: index for index, name in enumerate(names)},
        "renameByName": dict(panel.columns),
    }
    made.with_transformation(models.DataTransformerConfig(id_val="organize", options=organised))
    for heading, unit in panel.units.items():
        made.override_by_name(heading, [models.DynamicConfigValue(id_val="unit", value=unit)])
    if panel.marked:
        row = {"type": "color-background", "mode": "basic", "applyToRow": True}
        values = {"mappings": [_words(panel).to_json()], "custom.cellOptions": row}
        made.override_by_name(panel.marked, [models.DynamicConfigValue(id_val=k, value=v) for k, v in values.items()])
        made.sort_by([common.TableSortByFieldState().display_name(panel.marked).desc(True)])
    if panel.link:
        where = "var-namespace=${__data.fields.Namespace}&var-deployment=${__data.fields.Deployment}"
        url = f"/d/{panel.link}?{where}&${{datasource:queryparam}}&${{__url_time_range}}"
        links = [{"title": "This deployment", "url": url}]
        made.override_by_name("Deployment", [models.DynamicConfigValue(id_val="links", value=links)])
    return made


def _legend() -> common.VizLegendOptions:
    made = common.VizLegendOptions().display_mode(shapes.LegendDisplayMode.LIST)
    return made.placement(shapes.LegendPlacement.BOTTOM).show_legend(True)


def _tooltip() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI)


OF_KIND: Mapping[Kind, Callable[[Panel], Builder]] = {
    Kind.LINES: _lines,
    Kind.STATES: _states,
    Kind.NUMBER: _number,
    Kind.TABLE: _table,
}
