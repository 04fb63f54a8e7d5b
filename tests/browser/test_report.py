"""A report as a reader has it: a file that is opened, on a desk, on a phone, on paper."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Page, browser
from tests.support.pages import deployed, kept
from tests.support.reports import GB10, demo, evil, over, shared_out
from tests.support.runs import lost_round
from tests.unit.cli.states import both_promoted, searching_round_4
from tests.unit.report.test_search import ended, of_a_schedule

from paceline.report import FORMATS, Report, build_report

WIDE, PHONE, A4 = 1200, 390, 688
"""Of A4 less the margins of the page: 182 mm at 96 pixels an inch."""


def troubled() -> dict[str, Any]:
    """One point that is not valid, one round that gave no result."""
    run = demo()[0]
    run["rounds"][1]["points"][0] |= {"valid": False, "why": "3 of 6 requests completed"}
    run["rounds"].append(lost_round(3, "the client fell silent"))
    return run


def unbegun() -> dict[str, Any]:
    run = demo()[0]
    del run["status"]
    return run


REPORTS: dict[str, Callable[[], Report]] = {
    "demo": lambda: build_report(demo()),
    "troubled": lambda: build_report([troubled()]),
    "crossover": lambda: build_report([over(*GB10)]),
    "trade-off": lambda: build_report([shared_out(*GB10)]),
    "search": lambda: build_report([ended()]),
    "schedule": lambda: build_report([of_a_schedule()]),
    "evil": lambda: build_report([evil()]),
    "unbegun": lambda: build_report([unbegun()]),
    "promoted": lambda: deployed(both_promoted(), revisions=kept(both_promoted())),
    "searching": lambda: deployed(searching_round_4()),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name → URL of its file."""
    folder = tmp_path_factory.mktemp("reports")
    for name, made in REPORTS.items():
        (folder / f"{name}.html").write_text(FORMATS["html"](made()), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in REPORTS}


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with browser(tmp_path) as tab:
        yield tab


@pytest.mark.parametrize("name", REPORTS)
async def test_it_opens_without_an_error_and_asks_for_nothing(page: Page, reports: dict[str, str], name: str) -> None:
    await page.open(reports[name], width=WIDE)
    assert await page.ask("document.querySelector('h1').textContent.length") > 8
    assert page.console == []
    assert page.requests == [reports[name]]


@pytest.mark.parametrize("name", REPORTS)
async def test_nothing_is_wider_than_the_screen(page: Page, reports: dict[str, str], name: str) -> None:
    for width in (PHONE, WIDE):
        await page.open(reports[name], width=width)
        assert await page.ask("document.documentElement.scrollWidth") <= width
        assert await page.ask(OUTSIDE.replace("WIDTH", str(width))) == []


OUTSIDE = """
[...document.querySelectorAll("svg text, p, h1, h2, h3, dd, summary")]
  .filter(e => !e.closest(".scroll"))
  .filter(e => e.getBoundingClientRect().right > WIDTH + 1 || e.getBoundingClientRect().left < -1)
  .map(e => e.textContent)
"""


@pytest.mark.parametrize("width", [PHONE, WIDE])
async def test_the_text_of_charts_is_large_enough_to_read(page: Page, reports: dict[str, str], width: int) -> None:
    await page.open(reports["demo"], width=width)
    sizes = await page.ask("""
        [...document.querySelectorAll("svg text")]
          .filter(e => e.getClientRects().length)
          .map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)
    """)
    assert len(sizes) > 100
    assert min(sizes) >= 8


async def test_one_of_the_two_forests_is_shown(page: Page, reports: dict[str, str]) -> None:
    shown = (
        "[...document.querySelectorAll('.only-wide, .only-narrow')].filter(e => e.offsetHeight).map(e => e.className)"
    )
    for width, name in ((WIDE, "chart only-wide"), (PHONE, "chart only-narrow")):
        await page.open(reports["demo"], width=width)
        assert await page.ask(shown) == [name, name]


async def test_every_colour_of_a_chart_is_one_of_the_pages(page: Page, reports: dict[str, str]) -> None:
    """In light and in dark: a colour that the page does not know would be black."""
    inks = """[...document.querySelectorAll("svg text")].map(e => getComputedStyle(e).fill)"""
    for dark, paper in ((False, "rgb(255, 255, 255)"), (True, "rgb(17, 23, 29)")):
        await page.open(reports["demo"], width=WIDE, dark=dark)
        assert await page.ask("getComputedStyle(document.body).backgroundColor") == paper
        found = set(await page.ask(inks))
        assert len(found) >= 5
        assert not found & {"rgb(0, 0, 0)", paper}


async def test_the_mark_of_an_emulated_run_is_the_first_thing_on_the_screen(
    page: Page, reports: dict[str, str]
) -> None:
    await page.open(reports["demo"], width=PHONE)
    top = await page.ask(
        "(e => [e.textContent, e.offsetWidth, e.offsetHeight])(document.elementFromPoint(195, 20).closest('div'))"
    )
    assert "no model ran" in top[0]
    assert top[1] == PHONE
    assert top[2] > 40


@pytest.mark.parametrize("name", ["troubled", "promoted", "unbegun"])
async def test_the_decision_is_the_largest_text_and_is_on_the_first_screen(
    page: Page, reports: dict[str, str], name: str
) -> None:
    sizes = "[...document.querySelectorAll('main *:not(svg *)')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    for width in (PHONE, WIDE):
        await page.open(reports[name], width=width)
        assert await page.ask("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)") == max(
            await page.ask(sizes)
        )
        assert await page.ask("document.querySelector('h1').getBoundingClientRect().bottom") < 300


async def test_the_speed_up_stands_once_on_the_first_screen(page: Page, reports: dict[str, str]) -> None:
    for name, number in (("demo", "1.37x"), ("promoted", "1.36x")):
        await page.open(reports[name], width=WIDE)
        texts = """[...document.querySelectorAll("main p, main td, main dd, main h1, nav a")]
            .filter(e => e.getBoundingClientRect().bottom < 900).map(e => e.textContent).join(" ")"""
        assert (await page.ask(texts)).count(number) == 1


async def test_a_link_of_a_pool_leads_to_the_run_that_it_rests_on(page: Page, reports: dict[str, str]) -> None:
    await page.open(reports["promoted"], width=WIDE)
    first = "document.querySelector('section.pool a[href^=\"#run\"]')"
    assert await page.ask(f"{first}.click(), location.hash") == "#run-1"
    target = await page.ask(f"document.querySelector({first}.hash).getBoundingClientRect().top")
    assert -2 < target < 200
    assert await page.ask("document.querySelector(':target').textContent.includes('Promote wide')")


@pytest.mark.parametrize("name", ["demo", "troubled", "promoted"])
async def test_it_prints_on_pages_with_nothing_cut_off(page: Page, reports: dict[str, str], name: str) -> None:
    await page.open(reports[name], width=A4)
    await page.call("Emulation.setEmulatedMedia", media="print")
    beyond = f"[...document.querySelectorAll('table, svg')].filter(e => e.getBoundingClientRect().right > {A4 + 1})"
    assert await page.ask(f"{beyond}.length") == 0
    closed = "[...document.querySelectorAll('details > *:not(summary)')].filter(e => !e.checkVisibility()).length"
    assert await page.ask(closed) == 0
    printed = await page.pdf()
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 2


async def test_the_browser_leaves_no_process(tmp_path: Path) -> None:
    async with browser(tmp_path / "profile"):
        assert _mentioning(tmp_path)
    assert not _mentioning(tmp_path)


def _mentioning(path: Path) -> list[str]:
    lines = (Path(entry, "cmdline") for entry in Path("/proc").glob("[0-9]*"))
    return [line.parent.name for line in lines if str(path).encode() in _read(line)]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it ended
        return b""
