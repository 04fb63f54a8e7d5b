"""Draws with matplotlib for a page: inline SVG with real text and the page's colours.

A figure is drawn in pixels of the page. Colours are names (`--NAME`), to which the page gives values, one set for light
and one for dark.
"""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from paceline.report.model import RunView

ARM_COLOURS = 6
_NAMES = ("ink", "quiet", "line", "paper", "good", "bad", "open", "warn", *(f"arm{i}" for i in range(ARM_COLOURS)))
COLOUR: Mapping[str, str] = {name: f"#0a{i:02x}c7" for i, name in enumerate(_NAMES)}
"""A name as a matplotlib colour: a placeholder value that is replaced by the name in the output."""

FONT = 12
STYLE: dict[Any, Any] = {
    "figure.dpi": 72,
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": FONT,
    "text.color": COLOUR["ink"],
    "text.parse_math": False,
    "axes.edgecolor": COLOUR["line"],
    "axes.labelcolor": COLOUR["quiet"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "xtick.color": COLOUR["quiet"],
    "ytick.color": COLOUR["quiet"],
    "xtick.labelsize": FONT - 1,
    "ytick.labelsize": FONT - 1,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "lines.solid_capstyle": "round",
}
SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
TOOLTIP = "tooltip:"


def arm_name(index: int) -> str:
    """The baseline has its own colour; the candidates share the others."""
    return f"arm{index and (index - 1) % (ARM_COLOURS - 1) + 1}"


def arm_colour(index: int) -> str:
    return COLOUR[arm_name(index)]


def tooltip(text: str) -> str:
    """The `gid` of an artist with this tooltip."""
    return TOOLTIP + text


def svg(
    run: RunView, width: float, height: float, draw: Callable[[Figure], None], *, title: str, description: str
) -> str:
    """The SVG that `draw` draws on a figure of this size in pixels, with a name and an alternative text."""
    with rc_context({**STYLE, "svg.hashsalt": f"{run.namespace} {run.name} {title} {width}"}):
        figure = Figure(figsize=(width / 72, height / 72))
        FigureCanvasSVG(figure)
        if run.emulated:
            size = min(FONT * 4, width / 10)
            mark: dict[str, Any] = {
                "ha": "center",
                "va": "center",
                "color": COLOUR["warn"],
                "alpha": 0.16,
                "weight": "bold",
            }
            figure.text(0.5, 0.5, "EMULATED", fontsize=size, zorder=-1, **mark)
        draw(figure)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return _inlined(written.getvalue(), title, description)


def _inlined(text: str, title: str, description: str) -> str:
    root = ET.fromstring(text)
    for useless in (*root.findall(f"{{{SVG}}}metadata"), *root.findall(f"{{{SVG}}}defs")):
        if useless.find(f"{{{SVG}}}style") is not None or useless.tag.endswith("metadata"):
            root.remove(useless)
    _tidy(root)
    for useless_size in ("width", "height", "version"):
        del root.attrib[useless_size]
    root.set("role", "img")
    root.set("aria-label", f"{title}. {description}")
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    markup = ET.tostring(root, encoding="unicode")
    for name, sentinel in COLOUR.items():
        markup = markup.replace(sentinel, f"var(--{name})")
    return markup


def _tidy(root: ET.Element) -> None:
    """Removes ids without references, applies the page's font, and turns tooltips into titles."""
    used = {link.removeprefix("#") for e in root.iter() if (link := e.get(LINK))}
    used |= {ref for e in root.iter() for ref in re.findall(r"url\(#(\w+)\)", e.get("clip-path", ""))}
    for element in root.iter():
        identity = element.get("id", "")
        if identity.startswith(TOOLTIP):
            label = ET.Element(f"{{{SVG}}}title")
            label.text = identity.removeprefix(TOOLTIP)
            element.insert(0, label)
        if identity and identity not in used:
            del element.attrib["id"]
        if element.tag == f"{{{SVG}}}text":
            element.set("style", re.sub(r"font-family: [^;]*;? ?", "", element.get("style", "")))
            element.set("transform", element.get("transform", ""))
            if element.get("transform", "").startswith("rotate(-0 "):
                del element.attrib["transform"]
