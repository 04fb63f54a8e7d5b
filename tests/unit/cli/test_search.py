"""`paceline search replay`, as a person or a script reads it."""

import json
from pathlib import Path

import pytest
from tests.unit.search.tables import chains

from paceline.cli import main


def test_a_line_of_json_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "grid.json").write_text(json.dumps(chains(s5=1.4)))
    code = main(["search", "replay", "--table", str(file), "--noise", "0.02", "--seeds", "3:6"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert [line["seed"] for line in lines] == [3, 4, 5]
    for line in lines:
        assert list(line) == ["seed", "winner", "measuredPoints", "serverStarts", "gridPoints", "regret"]
        assert line["winner"] == {"numSteps": 5, "topK": 1, "numDraftTokens": 6}
        assert (line["gridPoints"], line["regret"]) == (10, 0.0)
        assert 6 <= line["measuredPoints"] <= 24


def test_the_baseline_wins_where_it_is_the_fastest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = chains(s1=0.9, s2=0.8, s3=0.7, s5=0.6, s7=0.5)
    (file := tmp_path / "grid.json").write_text(json.dumps(slow))
    assert main(["search", "replay", "--table", str(file), "--noise", "0", "--seeds", "0:1"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["winner"], line["regret"]) == ("baseline", 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("[]", 'an object is expected: {"baseline": {...}, "trees": [...]}'),
        ('{"baseline": {"a": 1}, "baseline": {"a": 2}, "trees": []}', "baseline: there twice in one object; keep one"),
        ('{"baseline": {"a": NaN}, "trees": [{}]}', "baseline.a: tokens per second from 1e-06 to 1e+09"),
    ],
)
def test_a_file_that_cannot_be_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (file := tmp_path / "grid.json").write_text(text)
    assert main(["search", "replay", "--table", str(file), "--noise", "0.02", "--seeds", "0:2"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{file}: {message}")


def test_what_was_left_out_is_told_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = chains()
    table["trees"].append({**table["trees"][2], "numDraftTokens": 8})
    (file := tmp_path / "grid.json").write_text(json.dumps(table))
    assert main(["search", "replay", "--table", str(file), "--noise", "0.02", "--seeds", "0:1"]) == 0
    assert capsys.readouterr().err == f"{file}: trees[5]: (3, 1, 8) is served as trees[2] is; it is not measured\n"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--noise", "2"), ("--noise", "-0.1"), ("--noise", "nan"), ("--seeds", "5"), ("--seeds", "5:5")],
)
def test_an_option_that_makes_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    options = {"--table": str(tmp_path / "grid.json"), "--noise": "0.02", "--seeds": "0:2", option: value}
    with pytest.raises(SystemExit) as error:
        main(["search", "replay", *(word for pair in options.items() for word in (f"{pair[0]}={pair[1]}",))])
    assert error.value.code == 2
    assert f"argument {option}" in capsys.readouterr().err
