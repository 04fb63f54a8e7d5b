"""Draws a dashboard from its JSON and from what a Prometheus answers, where there is no Grafana.

What it knows is what our boards use: lines with bands and stacks, numbers, states, merged tables, marks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image
from tests.dashboards.asked import Labels, Points, Prometheus, with_values
from tests.dashboards.units import shown

PIXELS = 100
COLUMN, UNIT, GAP, TOP = 0.66, 0.36, 0.08, 0.55
"""Inches: a grid column, a unit of height, between panels, above all."""
PAGE, PANEL, TEXT, FAINT, GRID = "#111217", "#181b1f", "#ccccdc", "#8e8e9a", "#2c3235"
PALETTE = ("#73bf69", "#f2cc0c", "#8ab8ff", "#ff9830", "#ff7383", "#b877d9", "#5794f2", "#fade2a", "#96d98d", "#ffb357")
NAMED = {
    "green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "blue": "#5794f2", "purple": "#b877d9",
}  # fmt: skip
LINES_OF_LEGEND = 4


@dataclass(frozen=True, slots=True)
class Scene:
    """What a picture is of: `values` of variables; `rate` stands for $__rate_interval."""

    asked: Prometheus
    values: Mapping[str, str]
    start: float
    end: float
    rate: str

    def filled(self, text: str, **more: str) -> str:
        return with_values(text, {**self.values, **more}, self.rate)

    def course(self, expr: str) -> list[tuple[Labels, Points]]:
        return self.asked.course(expr, self.start, self.end, max(1.0, (self.end - self.start) / 300))

    def now(self, expr: str) -> list[tuple[Labels, float]]:
        return self.asked.now(expr, self.end)


def picture(board: Mapping[str, Any], scene: Scene) -> bytes:
    """A PNG of the whole board."""
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    width, height = 24 * COLUMN + 2 * GAP, rows * UNIT + TOP + GAP
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 7.5, "text.color": TEXT}):
        figure = Figure(figsize=(width, height), dpi=PIXELS, facecolor=PAGE)
        said = "   ".join(f"{name}: {value}" for name, value in scene.values.items() if value != ".*")
        figure.text(GAP / width, 1 - 0.2 / height, board["title"], fontsize=12, weight="bold", va="center")
        figure.text(1 - GAP / width, 1 - 0.2 / height, said, fontsize=8, color=FAINT, va="center", ha="right")
        marks = list(_marks(board, scene))
        for panel in board["panels"]:
            place = panel["gridPos"]
            left, top = GAP + place["x"] * COLUMN, TOP - 0.1 + place["y"] * UNIT
            if panel["type"] == "row":
                figure.text(
                    left / width, 1 - (top + UNIT / 2) / height, f"⌄  {panel['title']}", fontsize=9, va="center"
                )
                continue
            w, h = place["w"] * COLUMN - GAP, place["h"] * UNIT - GAP
            _frame(figure, left / width, 1 - (top + h) / height, w / width, h / height)
            title = scene.filled(panel["title"])
            figure.text((left + 0.1) / width, 1 - (top + 0.15) / height, title, weight="bold", va="center")
            inside = (left / width, 1 - (top + h) / height, w / width, (h - 0.3) / height)
            DRAWN[panel["type"]](figure, inside, (w, h - 0.3), panel, scene, marks)
        out = BytesIO()
        figure.savefig(out, format="png", facecolor=PAGE)
    small = BytesIO()
    _few_colours(Image.open(out).convert("RGB")).save(small, "PNG", optimize=True)
    return small.getvalue()


def _few_colours(found: Image.Image) -> Image.Image:
    """The 256 that are most frequent stay as they are; edges of letters and lines take the nearest of them."""
    counted = sorted(found.getcolors(found.width * found.height) or (), reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counted for part in colour])  # type: ignore[attr-defined]
    return found.quantize(palette=palette, dither=Image.Dither.NONE)


Place = tuple[float, float, float, float]
Marks = Sequence[tuple[float, str]]


def _frame(figure: Figure, x: float, y: float, w: float, h: float) -> None:
    box = Rectangle((x, y), w, h, transform=figure.transFigure, facecolor=PANEL, edgecolor=GRID, zorder=-1)
    figure.patches.append(box)


def _marks(board: Mapping[str, Any], scene: Scene) -> Iterator[tuple[float, str]]:
    """Time and colour of each annotation."""
    for annotation in board["annotations"]["list"]:
        for _, points in scene.course(scene.filled(annotation["expr"])):
            times = {value / 1000 for _, value in points} if annotation["useValueForTime"] else {points[0][0]}
            for at in times:
                if scene.start <= at <= scene.end:
                    yield at, _colour(annotation["iconColor"])


def _colour(name: str) -> str:
    return NAMED.get(name, name)


def _legend(target: Mapping[str, Any], labels: Labels) -> str:
    found = target.get("legendFormat") or "value"
    return re.sub(r"\{\{(\w+)\}\}", lambda label: labels.get(label[1], ""), found)


def _axes(figure: Figure, place: Place, size: tuple[float, float], legend: float) -> Axes:
    """Within the panel, with room for ticks on the left and for so many lines of legend below."""
    x, y, w, h = place
    left, bottom = 0.55 / size[0], (0.25 + 0.17 * legend) / size[1]
    axes = figure.add_axes((x + left * w, y + bottom * h, w * (1 - left - 0.12 / size[0]), h * (0.97 - bottom)))
    axes.set_facecolor(PANEL)
    axes.tick_params(colors=FAINT, length=0, labelsize=6.5)
    axes.grid(color=GRID, linewidth=0.6)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def _over_time(axes: Axes, scene: Scene) -> None:
    axes.set_xlim(scene.start, scene.end)
    every = 60 if scene.end - scene.start > 150 else 30
    first = scene.start - scene.start % every + every
    axes.set_xticks([first + every * n for n in range(int((scene.end - first) / every) + 1)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")))


def _lines(
    figure: Figure, place: Place, size: tuple[float, float], panel: Mapping[str, Any], scene: Scene, marks: Marks
) -> None:
    found = [
        (_legend(target, labels), points)
        for target in panel["targets"]
        for labels, points in scene.course(scene.filled(target["expr"]))
    ]
    axes = _axes(figure, place, size, _lines_of_legend([name for name, _ in found], size[0]))
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    stacked = (custom.get("stacking") or {}).get("mode") == "normal"
    base: dict[float, float] = {}
    colours: dict[str, str] = {}
    for number, (name, points) in enumerate(found):
        own = _overrides(panel, name)
        colours[name] = colour = _colour((own.get("color") or {}).get("fixedColor", PALETTE[number % len(PALETTE)]))
        below = [base.get(at, 0.0) if stacked else axes.get_ylim()[0] for at, _ in points]
        values = [value + (base.get(at, 0.0) if stacked else 0.0) for at, value in points]
        if stacked:
            base |= {at: value for (at, _), value in zip(points, values, strict=True)}
        times = [at for at, _ in points]
        dash = (0, (4, 3)) if own.get("custom.lineStyle") else "solid"
        axes.plot(*_with_gaps(times, values), color=colour, linewidth=1.1, linestyle=dash)
        if stacked:
            axes.fill_between(times, below, values, color=colour, alpha=0.3, linewidth=0)
        if floor := next((points for other, points in found if other == own.get("custom.fillBelowTo")), None):
            under = dict(floor)
            both = [at for at in times if at in under]
            upper = [value for at, value in zip(times, values, strict=True) if at in under]
            axes.fill_between(both, [under[at] for at in both], upper, color=colour, alpha=0.18, linewidth=0)
    _over_time(axes, scene)
    if not found:
        axes.text(0.5, 0.5, "No data", transform=axes.transAxes, ha="center", color=FAINT, fontsize=9)
    if (least := defaults.get("min")) is not None:
        axes.set_ylim(bottom=least, top=max(axes.get_ylim()[1], least + 1e-9) * 1.02)
    if (most := defaults.get("max")) is not None and axes.get_ylim()[1] > most / 2:
        axes.set_ylim(top=most)
    unit, decimals = defaults.get("unit", "short"), defaults.get("decimals")
    axes.yaxis.set_major_locator(MaxNLocator(4, min_n_ticks=3, integer=decimals == 0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, unit, decimals)))
    for at, colour in marks:
        axes.axvline(at, color=colour, linewidth=0.9, linestyle=(0, (2, 2)))
        axes.plot(
            [at], [0], marker="^", color=colour, markersize=4, transform=axes.get_xaxis_transform(), clip_on=False
        )
    _write_legend(figure, place, size, colours)


def _with_gaps(times: list[float], values: list[float]) -> tuple[list[float], list[float]]:
    """Where a series was absent, no line."""
    step = min((b - a for a, b in pairwise(times)), default=1.0)
    out: tuple[list[float], list[float]] = ([], [])
    for number, (at, value) in enumerate(zip(times, values, strict=True)):
        if number and at - times[number - 1] > 1.5 * step:
            out[0].append(at)
            out[1].append(float("nan"))
        out[0].append(at)
        out[1].append(value)
    return out


def _overrides(panel: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {
        one["id"]: one["value"]
        for override in panel["fieldConfig"]["overrides"]
        if re.search(override["matcher"]["options"].strip("/"), name)
        for one in override["properties"]
    }


def _placed(names: Sequence[str], width: float) -> Iterator[tuple[str, int, float]]:
    """Name, line and inches from the left."""
    line, at = 0, 0.12
    for name in names:
        needs = 0.28 + 0.062 * len(name)
        if at + needs > width and at > 0.2:
            line, at = line + 1, 0.12
        yield name, line, at
        at += needs


def _lines_of_legend(names: Sequence[str], width: float) -> int:
    unique = list(dict.fromkeys(names))
    return min(LINES_OF_LEGEND, 1 + max((line for _, line, _ in _placed(unique, width)), default=0))


def _write_legend(figure: Figure, place: Place, size: tuple[float, float], colours: Mapping[str, str]) -> None:
    x, y, w, h = place
    lines = _lines_of_legend([*colours], size[0])
    for name, line, at in _placed([*colours], size[0]):
        if line < lines:
            up = y + h * (0.09 + 0.17 * (lines - 1 - line)) / size[1]
            figure.text(x + w * at / size[0], up, "▬", color=colours[name], fontsize=6, va="center")
            figure.text(x + w * (at + 0.15) / size[0], up, name, color=TEXT, fontsize=6.5, va="center")


def _number(
    figure: Figure, place: Place, size: tuple[float, float], panel: Mapping[str, Any], scene: Scene, _: Marks
) -> None:
    x, y, w, h = place
    found = [
        (_legend(target, labels), value)
        for target in panel["targets"]
        for labels, value in scene.now(scene.filled(target["expr"]))
    ]
    defaults = panel["fieldConfig"]["defaults"]
    named = panel["options"]["textMode"] == "value_and_name"
    large, small = (9.0, 20.0) if "text" in panel["options"] else (20.0, 9.0)
    for number, (name, value) in enumerate(found):
        middle = x + w * (number + 0.5) / len(found)
        text = shown(value, defaults.get("unit", "short"), defaults.get("decimals"), scene.end)
        steps = (defaults.get("thresholds") or {}).get("steps") or []
        colour = next((s["color"] for s in reversed(steps) if s["value"] is None or value >= s["value"]), TEXT)
        room = size[0] / len(found)
        figure.text(
            middle, y + h * (0.42 if named else 0.5), text, color=_colour(colour), ha="center", va="center",
            fontsize=min(large, room / max(len(text), 3) * 105),
        )  # fmt: skip
        if named:
            figure.text(
                middle, y + h * 0.78, name, ha="center", va="center", fontsize=min(small, room / len(name) * 105)
            )
    if not found:
        figure.text(x + w / 2, y + h / 2, defaults.get("noValue", "No data"), ha="center", va="center", fontsize=14)


def _states(
    figure: Figure, place: Place, size: tuple[float, float], panel: Mapping[str, Any], scene: Scene, _: Marks
) -> None:
    found = [
        (_legend(target, labels), points)
        for target in panel["targets"]
        for labels, points in scene.course(scene.filled(target["expr"]))
    ]
    words = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
    axes = _axes(figure, place, size, 1)
    widest = 0.09 * max((len(name) for name, _ in found), default=1)
    box = axes.get_position()
    moved = widest / size[0] * place[2] - 0.3 / size[0] * place[2]
    axes.set_position((box.x0 + moved, box.y0, box.width - moved, box.height))
    for row, (_name, points) in enumerate(found):
        step = min((b[0] - a[0] for a, b in pairwise(points)), default=1.0)
        for at, value in points:
            word = words.get(f"{value:g}")
            if word:
                axes.broken_barh([(at - step, step * 1.05)], (row - 0.38, 0.76), facecolors=_colour(word["color"]))
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks(range(len(found)), [name for name, _ in found], color=TEXT)
    axes.grid(axis="y", visible=False)
    _over_time(axes, scene)
    _write_legend(figure, place, size, {word["text"]: _colour(word["color"]) for word in words.values()})


def merged(panel: Mapping[str, Any], scene: Scene) -> list[dict[str, str | float]]:
    """Rows of a table: series of all its queries joined where the labels that they share are equal."""
    rows: list[dict[str, str | float]] = []
    for target in panel["targets"]:
        column = f"Value #{target['refId']}"
        for labels, value in scene.now(scene.filled(target["expr"])):
            fits = [
                row
                for row in rows
                if column not in row and all(row.get(key, value) == value for key, value in labels.items())
            ]
            for row in fits:
                row |= {**labels, column: value}
            if not fits:
                rows.append({**labels, column: value})
    return rows


def _marked_first(
    panel: Mapping[str, Any], rows: list[dict[str, str | float]], keys: Mapping[str, str]
) -> tuple[list[dict[str, str | float]], int]:
    """The rows as the panel sorts them, and how many of the first it colours."""
    for by in (panel.get("options") or {}).get("sortBy") or ():
        key = keys[by["displayName"]]
        rows = sorted(rows, key=lambda row: -float(row.get(key, 0)))
        return rows, sum(float(row.get(key, 0)) > 0 for row in rows)
    return rows, 0


def _table(
    figure: Figure, place: Place, size: tuple[float, float], panel: Mapping[str, Any], scene: Scene, _: Marks
) -> None:
    x, y, w, h = place
    organised = next(one["options"] for one in panel["transformations"] if one["id"] == "organize")
    headings = sorted(organised["renameByName"].items(), key=lambda item: organised["indexByName"][item[0]])
    defaults = panel["fieldConfig"]["defaults"]
    rows, reds = _marked_first(panel, merged(panel, scene), {heading: key for key, heading in headings})
    columns = []
    for key, heading in headings:
        unit = next((one["value"] for one in _by_name(panel, heading) if one["id"] == "unit"), "short")
        words = next((one["value"][0]["options"] for one in _by_name(panel, heading) if one["id"] == "mappings"), {})
        cells = [row.get(key, "–") for row in rows]
        texts = [
            words.get(f"{cell:g}", {}).get("text") or shown(cell, unit, defaults.get("decimals"), scene.end)
            if isinstance(cell, float)
            else cell
            for cell in cells
        ]
        columns.append((heading, texts))
    needs = [max(map(len, [heading, *texts])) + 3 for heading, texts in columns]
    for line in range(reds):
        middle = y + h - (0.42 + 0.26 * line) * h / size[1]
        half = 0.12 * h / size[1]
        box = Rectangle(
            (x, middle - half), w, 2 * half, transform=figure.transFigure, facecolor=NAMED["red"], alpha=0.6
        )
        figure.patches.append(box)
    for number, (heading, texts) in enumerate(columns):
        at = x + w * (0.008 + 0.99 * sum(needs[:number]) / sum(needs))
        figure.text(at, y + h - 0.12 * h / size[1], heading, color="#6e9fff", weight="bold", va="center")
        for line, text in enumerate(texts):
            figure.text(at, y + h - (0.42 + 0.26 * line) * h / size[1], text, va="center", fontsize=7.5)


def _cell(found: str | float, unit: str, decimals: int | None, scene: Scene) -> str:
    return shown(found, unit, decimals, scene.end) if isinstance(found, float) else found


def _by_name(panel: Mapping[str, Any], heading: str) -> list[dict[str, Any]]:
    overrides = panel["fieldConfig"]["overrides"]
    return [one for each in overrides if each["matcher"]["options"] == heading for one in each["properties"]]


Draw = Callable[[Figure, Place, tuple[float, float], Mapping[str, Any], Scene, Marks], None]
DRAWN: Mapping[str, Draw] = {"timeseries": _lines, "stat": _number, "state-timeline": _states, "table": _table}
