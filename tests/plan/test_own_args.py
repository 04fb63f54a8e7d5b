"""What a candidate has of its own beside its draft and shape is said wherever its verdict is."""

from dataclasses import replace
from typing import Any

from tests.support.messages import Says
from tests.support.world import World, example

from paceline.evidence import Replicate
from paceline.evidence.arguments import Difference
from paceline.report.build import build_report

OWN = "--speculative-attention-mode=decode"


def measured(**own: Any) -> World:
    """The latency pool, its candidate with these fields too, its first round under way."""
    manifest = example("latency")
    manifest["spec"]["candidates"][0] |= own
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


def test_verdict_and_report_name_it(says: Says) -> None:
    world = measured(args=[OWN])
    for _ in range(8):
        if not world.outcome("latency"):
            world.round_ends()
    run = world.runs("latency")[-1]
    assert OWN in run["status"]["verdict"]["message"]
    assert run["status"]["armVerdicts"][0]["internal"]["args"] == [OWN]
    says(build_report([run]).runs[0].sentence)


def test_nothing_is_said_where_there_is_nothing(says: Says) -> None:
    world = measured()
    for _ in range(8):
        if not world.outcome("latency"):
            world.round_ends()
    status = world.runs("latency")[-1]["status"]
    says(status["verdict"]["message"])
    assert "internal" not in status["armVerdicts"][0]


def otherwise(found: Replicate) -> Replicate:
    """Its server says that it streams in larger pieces."""
    return replace(found, differs=(Difference("stream_interval", "8", "1"),))


def test_a_candidate_whose_server_runs_otherwise_is_no_evidence_and_status_says_which_argument(says: Says) -> None:
    world = measured()
    for _ in range(2):
        world.round_ends(wide=otherwise)
    run = world.runs("latency")[-1]
    assert run["status"]["verdict"]["outcome"] == "Error"
    says(run["status"]["verdict"]["message"])
    (wide,) = (one for one in run["rounds"][0]["replicates"] if one["arm"] == "wide")
    says(*wide["differs"])
    assert build_report([run]).runs[0].configuration.unequal == tuple(f"wide: {one}" for one in wide["differs"])
    assert world.serving("latency") == "baseline"
