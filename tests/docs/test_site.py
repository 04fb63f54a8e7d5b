"""The documents as a site: `make docs` says nothing, and what README shows is a picture on it."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "install", "first-deployment", "concepts", "gate", "runbook", "security", "states", "api", "automation",
    "decisions/README", "upgrading",
)  # fmt: skip


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def links(page: Path) -> list[str]:
    parser = Links()
    parser.feed(page.read_text())
    return parser.found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs`, but in a place of its own."""
    built = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-b", "html"]
    ended = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ROOT / "docs", built], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return built


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    menu = links(site / "index.html")
    assert [page for page in PAGES if f"{page}.html" not in menu] == []


def test_every_link_within_the_site_leads_to_a_file(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    inside = {
        (page, link.partition("#")[0].partition("?")[0])
        for page in pages
        for link in links(page)
        if "://" not in link and not link.startswith(("#", "mailto:", "data:"))
    }
    assert len(inside) > 1000
    assert [(page.name, link) for page, link in inside if link and not (page.parent / link).exists()] == []


def test_it_asks_no_other_server_for_a_script_a_style_or_a_picture(site: Path) -> None:
    class Sources(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            names = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
            self.found += [value for name, value in attrs if value and name == names.get(tag)]

    sources = Sources()
    for page in site.glob("*.html"):
        sources.feed(page.read_text())
    assert len(sources.found) > 100
    assert [source for source in set(sources.found) if "://" in source or source.startswith("//")] == []


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text((ROOT / "docs" / "conf.py").read_text())
    (tmp_path / "index.md").write_text("# Here\n\n[there](index.md#nowhere)\n")
    command = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "-b", "html", tmp_path, tmp_path / "site"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "nowhere" in ended.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "diagrams").glob("*.svg")), ids=lambda path: path.name)
def test_a_diagram_reads_on_dark_and_on_light(path: Path) -> None:
    """Each text stands in a rectangle with a light fill of its own, and is dark itself."""
    svg = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(path.read_text())
    boxes = [tuple(float(box.attrib[key]) for key in ("x", "y", "width", "height")) for box in root.iter(f"{svg}rect")]
    texts = list(root.iter(f"{svg}text"))
    assert texts
    assert {text.attrib["fill"] for text in texts} == {"#1c2430"}
    for text in texts:
        at = (float(text.attrib["x"]), float(text.attrib["y"]))
        half = len(text.text or "") * 0.52 * float(text.attrib["font-size"]) / 2
        assert any(x <= at[0] - half and at[0] + half <= x + w and y < at[1] < y + h for x, y, w, h in boxes), text.text
    assert all(min(bytes.fromhex(box.attrib["fill"][1:])) > 0xC0 for box in root.iter(f"{svg}rect"))
