"""dev/follow-readme finds where README and a run of it disagree; `make follow-readme` runs it on a clean clone."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from paceline import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def follow() -> ModuleType:
    """The program, which has no .py."""
    loader = SourceFileLoader("follow_readme", str(ROOT / "dev" / "follow-readme"))
    module = module_from_spec(spec_from_loader("follow_readme", loader) or pytest.fail("it cannot be loaded"))
    loader.exec_module(module)
    return module


def test_what_it_quotes_agrees_with_itself(follow: ModuleType) -> None:
    assert list(follow.differences(follow.quoted(README), f"much else\n{follow.quoted(README)}\n")) == []


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        ("wide  all, by weight", "narrow  all, by weight"),
        ("1.283x  1.275–1.291", "1.353x  1.275–1.291"),
        ("1.283x  1.275–1.291", "1.283x  1.292–1.391"),
        ("> 1.05x", "> 1.15x"),
        ("worst workload chat@1", "worst workload code@1"),
        ("Emulated: Promote wide", "Promote wide"),
    ],
)
def test_another_word_or_a_far_number_is_a_difference(follow: ModuleType, said: str, printed: str) -> None:
    text = follow.quoted(README)
    assert said in text
    assert len(list(follow.differences(text, text.replace(said, printed)))) == 1


def test_a_number_within_the_tolerance_is_none(follow: ModuleType) -> None:
    text = follow.quoted(README)
    assert list(follow.differences(text, text.replace("1.283x  1.275–1.291", "1.299x  1.254–1.345"))) == []


def test_every_key_of_the_smallest_resource_is_required(
    follow: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "smallest.yaml").write_text(follow.resource(README))
    assert cli.main(["validate", str(file)]) == 0
    lines = follow.resource(README).splitlines()
    assert len(lines) == 9
    for path in list(keys(yaml.safe_load(follow.resource(README))["spec"])):
        manifest = yaml.safe_load(follow.resource(README))
        *parents, last = path
        place = manifest["spec"]
        for key in parents:
            place = place[key]
        del place[last]
        file.write_text(yaml.safe_dump(manifest))
        assert cli.main(["validate", str(file)]) == 1, path
    capsys.readouterr()


def keys(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every path to a key or an item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, inner in items for path in ((*at, key), *keys(inner, (*at, key)))]


def test_the_demos_table_is_that_of_the_report() -> None:
    """Means and points of the winners, of the third demo in docs/reports/demos.md."""
    report = (ROOT / "docs" / "reports" / "demos.md").read_text()
    (row,) = re.findall(r"(?m)^\| 3 \|.*$", report)
    told = re.findall(r"(mean|code|swe|terminal|chat) (\d\.\d{3})", row)
    table = re.findall(r"(?m)^    (?:latency +wide|throughput +narrow) +(\w+)(?:@\d+)? +(\d\.\d{3})", README)
    assert len(told) == 10
    assert table == told
