"""Evidence that was measured elsewhere counts only while its signer is listed. As test_imported."""

from dataclasses import replace
from typing import Any

import pytest
from tests.plan.test_imported import deployed, jobs, run
from tests.support import signing
from tests.support.edits_of_specs import loosened
from tests.support.imported import ALLOWED, LATER, NAME, apply, file
from tests.support.messages import Says
from tests.support.world import World, example

from paceline.core.manifest import Manifest
from paceline.core.names import SIGNATURE
from paceline.evidence.signature import key_id

DESK, OTHER = signing.key(1), signing.key(2)


def listing(*keys: signing.Key) -> World:
    world = World()
    world.settings = replace(ALLOWED, signers=names(*keys))
    world.cluster.now += LATER
    return world


def names(*keys: signing.Key) -> dict[str, str]:
    return {f"signer-{number}": signing.pem(key) for number, key in enumerate(keys)}


def test_a_listed_signers_evidence_serves() -> None:
    """The run's status has the key's id, and nothing is measured."""
    world = listing(OTHER, DESK)
    apply(world, signing.signed_file(DESK))
    deployed(world)
    assert (world.serving("latency"), jobs(world)) == ("wide", 0)
    assert run(world)["status"]["signer"] == key_id(signing.pem(DESK))


def one_round_faster(signed: Manifest) -> Manifest:
    """As somebody edits it who may write BenchmarkRounds, but has no key."""
    for point in signed["rounds"][1]["points"]:
        if point["arm"] == "wide":
            point["steadyThroughput"] = "999"
    return signed


def with_annotation(value: str) -> Manifest:
    signed = signing.signed_file(DESK)
    signed["metadata"]["annotations"] = {SIGNATURE: value}
    return signed


@pytest.mark.parametrize(
    "applied",
    [
        pytest.param(lambda: signing.signed_file(None), id="unsigned"),
        pytest.param(lambda: signing.signed_file(OTHER), id="of somebody else"),
        pytest.param(lambda: one_round_faster(signing.signed_file(DESK)), id="edited"),
        pytest.param(lambda: with_annotation("no base64"), id="no signature"),
    ],
)
def test_what_no_listed_signer_has_signed_is_no_evidence(applied: Any, says: Says) -> None:
    world = listing(DESK)
    apply(world, applied())
    assert world.condition("Failed", run(world)) == "True ImportRefused"
    says(run(world)["status"]["conditions"][0]["message"])
    deployed(world)
    assert jobs(world) == 1


def test_a_signer_taken_off_the_list_is_as_a_deleted_run() -> None:
    """What the pool serves on its evidence stays in service, and the pool measures for itself."""
    world = listing(DESK)
    apply(world, signing.signed_file(DESK))
    deployed(world)
    assert world.serving("latency") == "wide"
    world.settings = replace(world.settings, signers=names(OTHER))
    world.settle("the signer is no longer listed", 5)
    assert (world.serving("latency"), world.condition("Promoted"), jobs(world)) == ("wide", "True StillPromoted", 1)
    deleted = listing(DESK)
    apply(deleted, signing.signed_file(DESK))
    deployed(deleted)
    deleted.cluster.delete("BenchmarkRun", NAME)
    deleted.settle("the run is deleted", 5)
    assert deleted.condition("Promoted") == world.condition("Promoted")
    assert (deleted.serving("latency"), jobs(deleted)) == (world.serving("latency"), jobs(world))


@pytest.mark.parametrize("tampered", [False, True])
def test_rounds_are_judged_again_only_as_they_were_signed(tampered: bool) -> None:
    """Another gate takes the rounds over; not if somebody has replaced one since the run was taken in."""
    world = listing(DESK)
    apply(world, signing.signed_file(DESK))
    if tampered:
        one = next(one for one in world.cluster.of("BenchmarkRound") if one["spec"]["round"] == 1)
        one_round_faster({"rounds": [one["spec"], one["spec"]]})
    manifest = example("latency")
    loosened(manifest["spec"])
    deployed(world, gate=manifest["spec"]["gate"])
    assert (world.serving("latency"), jobs(world)) == (("baseline", 1) if tampered else ("wide", 0))


def test_an_unlisted_signers_run_is_not_used_by_a_pool_that_comes_later(says: Says) -> None:
    """A note in its status says why."""
    world = listing(DESK)
    apply(world, signing.signed_file(DESK))
    assert run(world)["status"]["verdict"]["outcome"] == "Promote"
    world.settings = replace(world.settings, signers=names(OTHER))
    deployed(world)
    assert (world.serving("latency"), jobs(world)) == ("baseline", 1)
    (note,) = [note for note in world.status()["notes"] if NAME in note]
    says(note)


def test_without_a_list_a_signature_is_not_asked_for() -> None:
    world = listing()
    apply(world, file())
    assert run(world)["status"]["verdict"]["outcome"] == "Promote"
    assert "signer" not in run(world)["status"]
