"""Draws the pictures of docs/pictures: `make screenshots`.

Pages are photographed by the browser that tests look at them with; terminals are what rich draws, as SVG with no font
from elsewhere. Nothing is made up for them: the runs are those of tests/support/demo.yaml and releases.yaml, which
real programs measured on an emulated engine; the deployment and the upgrades are stories of the simulated cluster,
planned by the real operator. All of it is marked as emulated.
"""

import asyncio
import io
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from PIL import Image
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.terminal_theme import MONOKAI
from rich.text import Text
from tests.browser.chromium import Page, browser
from tests.plan import test_changes
from tests.support.looked_at import looked_at
from tests.support.pages import deployed, kept
from tests.support.reports import demo
from tests.support.stories import TELL
from tests.support.world import World
from tests.unit.cli.states import both_promoted, measuring_round_2_of_3, rolled_back

from paceline.cli.live.tree import tree
from paceline.cli.live.why_text import paragraph
from paceline.report import FORMATS, Report, build_report

LARGEST = 200_000
"""Bytes of a picture."""
WIDE, PHONE = 1100, 390


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """`height`: the page's first so many pixels."""

    page: str
    height: int
    width: int = WIDE
    dark: bool = False


def changed(story: Callable[[], None]) -> Report:
    """The run about the changed spec of one of tests/plan/test_changes.py."""
    world = World()
    story.__dict__[TELL](world)
    run = world.all_runs()[-1]
    return build_report([run])


PAGES: Mapping[str, Callable[[], Report]] = {
    "run": lambda: build_report(demo()[:1]),
    "deployment": lambda: deployed(both_promoted(), revisions=kept(both_promoted())),
    "upgrade-slower": lambda: changed(test_changes.test_an_upgrade_that_halves_the_speed_stays_off),
    "upgrade-faster": lambda: changed(test_changes.test_an_upgrade_that_is_faster_arrives_by_one_roll_out),
    "upgrade-stuck": lambda: changed(test_changes.test_acceptance_stuck_at_one_after_an_upgrade_keeps_the_old_image),
}
SHOTS: Mapping[str, Shot] = {
    "run": Shot(page="run", height=1150),
    "run-dark": Shot(page="run", height=1150, dark=True),
    "run-phone": Shot(page="run", height=1400, width=PHONE),
    "deployment": Shot(page="deployment", height=1400),
    "deployment-dark": Shot(page="deployment", height=1400, dark=True),
    "deployment-phone": Shot(page="deployment", height=1700, width=PHONE),
    "upgrade-slower": Shot(page="upgrade-slower", height=870),
    "upgrade-faster": Shot(page="upgrade-faster", height=800),
    "upgrade-stuck": Shot(page="upgrade-stuck", height=570),
}


def status(columns: int) -> RenderableType:
    """A pool in its second round, the other in its first."""
    world = measuring_round_2_of_3()
    return tree(looked_at(world, into_the_round=timedelta(minutes=5)), world.cluster.now)


def why(columns: int) -> RenderableType:
    """A pool that a person has rolled back."""
    world = rolled_back()
    seen = looked_at(world)
    return Text("\n".join(textwrap.wrap(paragraph(seen, seen.pools[0], world.cluster.now), columns)))


TERMINALS: Mapping[str, tuple[str, Callable[[int], RenderableType]]] = {
    "status": ("kubectl paceline status", status),
    "why": ("kubectl paceline why", why),
}
COLUMNS = 100


def terminal(command: str, draw: Callable[[int], RenderableType]) -> str:
    """The command and what it prints."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(draw(COLUMNS))
    console.print()
    form = _without_fonts(CONSOLE_SVG_FORMAT)
    return console.export_svg(title="emulated", theme=MONOKAI, code_format=form, unique_id=command.rpartition(" ")[2])


def _without_fonts(form: str) -> str:
    """A picture loads nothing: whoever looks at it has a font of fixed width."""
    return re.sub(r"@font-face \{\{.*?\}\}", "", form, flags=re.DOTALL)


async def photograph(page: Page, url: str, shot: Shot) -> bytes:
    await page.open(url, width=shot.width, height=shot.height, dark=shot.dark)
    return _of_few_colours(await page.screenshot(shot.width, shot.height))


def _of_few_colours(picture: bytes) -> bytes:
    """The page has few: a palette takes a third of the bytes."""
    smaller = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
        smaller, "PNG", optimize=True
    )
    return smaller.getvalue()


async def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        pages = Path(temporary)
        for name, made in PAGES.items():
            (pages / f"{name}.html").write_text(FORMATS["html"](made()), encoding="utf-8")
        async with browser(pages / "profile") as page:
            for name, shot in SHOTS.items():
                _write(folder / f"{name}.png", await photograph(page, (pages / f"{shot.page}.html").as_uri(), shot))
    for name, (command, draw) in TERMINALS.items():
        _write(folder / f"{name}.svg", terminal(command, draw).encode())


def _write(path: Path, picture: bytes) -> None:
    assert len(picture) <= LARGEST, f"{path}: {len(picture)} bytes are more than {LARGEST}"
    path.write_bytes(picture)
    print(f"{path}  {len(picture) // 1000} kB")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
