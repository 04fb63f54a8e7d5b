"""What the time of a round goes into, and the advice where a part is odd. The starts are those of two arms in an H200's
first two rounds (dev/gpu/h200-2026-11-26), by their servers' logs (tests/unit/engines/starts); a round lasts as long as
two of its three arms did."""

import copy
from typing import Any

import pytest
from tests.fault.virtual import run
from tests.support.memory import Cluster, MemoryApi
from tests.support.messages import Says
from tests.support.reports import said
from tests.support.runs import latency

from paceline.api.round import ROUND_KIND
from paceline.cli import why
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.core.names import RUN_LABEL
from paceline.measure.record import as_documents
from paceline.report import FORMATS, build_report
from paceline.report.model import TimeView
from paceline.report.spent import time_lines, time_note, time_table

H200 = {
    "baseline": ({"imports": 43.6, "weights": 2.79, "graphs": 4.0}, {"imports": 47.8, "weights": 3.15, "graphs": 1.9}),
    "wide": ({"imports": 40.0, "weights": 2.78, "graphs": 9.93}, {"imports": 33.1, "weights": 2.33, "graphs": 8.51}),
}  # fmt: skip
STARTS = {"baseline": (51.6, 53.8), "wide": (55.0, 46.1)}
HELD = (165, 144)


def timed(**changed: Any) -> dict[str, Any]:
    """A run with these rounds on a real engine; `changed`: parts of every server, or None for "not known"."""
    found = copy.deepcopy(latency())
    found["status"].pop("emulated")
    for number, entry in enumerate(found["rounds"]):
        entry.pop("emulated")
        entry["heldSeconds"] = HELD[number % 2]
        for server in entry["replicates"]:
            parts = {**H200[server["arm"]][number % 2], "warmUp": 4.2, "loads": 11.5, "end": 5.6, **changed}
            server["startSeconds"] = f"{STARTS[server['arm']][number % 2]}"
            server["seconds"] = {part: f"{seconds}" for part, seconds in parts.items() if seconds}
    found["rounds"] = found["rounds"][:2]
    return found


def view(found: dict[str, Any]) -> TimeView:
    time = said(found).time
    assert time
    return time


def test_each_arm_has_its_parts_and_their_shares_of_the_round(says: Says) -> None:
    """Baseline: (43.6 + 47.8) / 2 of (165 + 144) / 2."""
    table = time_table(view(timed()))
    says(table.head, *(" | ".join(f"{cell.text} ({cell.note})" for cell in row) for row in table.rows))
    baseline = dict(zip(table.head, table.rows[0], strict=True))
    assert (baseline["Imports, s"].text, baseline["Imports, s"].note) == ("45.7", "30%")
    assert (baseline["Rest of the start, s"].text, baseline["End, s"].text) == ("1.08", "5.60")
    assert "Image, s" not in table.head, "no pod has told of a pull"
    says(time_note(view(timed())))


def test_the_parts_of_a_start_add_up_to_it() -> None:
    for arm in view(timed()).arms:
        parts = sum(arm.mean(part) for part in ("imports", "weights", "graphs", "rest"))
        assert parts == pytest.approx(arm.start)


def test_markdown_and_html_have_the_table_and_the_advice() -> None:
    report = build_report([timed()])
    for kind in ("md", "html"):
        page = FORMATS[kind](report)
        assert "What the time of a round goes into" in page
        assert "Imports take 46 s on baseline" in page


def test_a_round_of_an_older_release_has_no_table() -> None:
    older = timed()
    for entry in older["rounds"]:
        for server in entry["replicates"]:
            del server["seconds"]
    assert said(older).time is None
    assert "the time of a round" not in FORMATS["md"](build_report([older]))


LONG_LOADS = {"loads": 60}
ODD = {
    "imports": ({"imports": 31}, {"imports": 29}),
    "weights": ({"imports": 2, "weights": 70, "start": 110}, {"imports": 2, "weights": 50, "start": 60}),
    "graphs": ({"imports": 2, "graphs": 35, "start": 60}, {"imports": 2, "graphs": 29, "start": 40}),
    "image": ({"imports": 2, "image": 61}, {"imports": 2, "image": 59}),
    "loads": ({"imports": 2, "loads": 7.5}, {"imports": 2, "loads": 8}),
}


def advice(parts: dict[str, Any]) -> tuple[str, ...]:
    parts = {**LONG_LOADS, **parts}
    found = timed(**{part: seconds for part, seconds in parts.items() if part != "start"})
    for entry in found["rounds"]:
        for server in entry["replicates"]:
            server["startSeconds"] = str(parts.get("start", server["startSeconds"]))
    return view(found).advice


@pytest.mark.parametrize("rule", ODD)
def test_a_part_that_is_odd_is_told_and_another_is_not(rule: str, says: Says) -> None:
    odd, common = ODD[rule]
    (told,) = advice(odd)
    says(told)
    assert advice(common) == ()


@pytest.mark.parametrize("parts", [{"weights": 70, "start": 150}, {"graphs": 35, "start": 80}])
def test_a_long_part_of_a_much_longer_start_is_not_what_is_odd(parts: dict[str, Any]) -> None:
    assert advice({"imports": 2, **parts}) == ()


def test_a_first_pull_is_nothing_odd() -> None:
    found = timed(imports=2, image=300, **LONG_LOADS)
    for server in found["rounds"][1]["replicates"]:
        del server["seconds"]["image"]
    assert view(found).advice == ()


def test_loads_that_were_shortened_because_more_would_show_nothing_are_not_called_short() -> None:
    found = timed(imports=2, loads=1)
    found["rounds"][1]["notes"] = [
        "fewer requests were sent, as more would not tighten the interval: 16 of 64 on code@1"
    ]
    assert view(found).advice == ()


def test_an_emulators_time_is_shown_without_advice() -> None:
    found = timed()
    found["rounds"][0]["emulated"] = True
    assert view(found).advice == ()
    assert time_lines(found) == ()


def test_a_terminal_gets_one_sentence_and_the_advice_or_nothing(says: Says) -> None:
    says(*time_lines(timed()))
    assert time_lines(timed(imports=2, **LONG_LOADS)) == ()


@pytest.mark.parametrize("odd", ["nan", "-3", "1e400", "word"])
def test_numbers_that_are_none_are_left_out(odd: str) -> None:
    found = timed()
    for entry in found["rounds"]:
        entry["replicates"][0]["seconds"] = dict.fromkeys(("image", "imports", "loads"), odd)
    time = view(found)
    arm = found["rounds"][0]["replicates"][0]["arm"]
    assert arm in [one.arm for one in time.arms]
    assert all(seconds > 0 for one in time.arms for part in one.parts.values() for seconds in part)


def test_why_tells_it_of_the_pools_run(says: Says) -> None:
    async def told() -> tuple[str, ...]:
        api = MemoryApi(Cluster(kinds=RECONCILED_KINDS))
        of_run = timed()
        await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
        for one in as_documents(of_run):
            metadata = {**one["metadata"], "namespace": "models"}
            if one["kind"] == ROUND_KIND:
                metadata["labels"] = {RUN_LABEL: of_run["metadata"]["name"]}
            await api.create({**one, "metadata": metadata})
        return await why.time_of_run(api, "models", of_run["metadata"]["name"])

    found = run(told())
    says(*found)
    assert found == time_lines(timed())
