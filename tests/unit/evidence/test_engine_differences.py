"""In what an arm with an engine of its own differs: from the spec what no server tells, the rest from the servers."""

from dataclasses import replace

from tests.unit.engines.sglang.servers import BASE, server

from paceline.api.round import ReplicateRecord, Round
from paceline.core import Arm
from paceline.evidence.engine_differences import EngineDifferences, engine_differences

SHARED = server()
OWN = replace(SHARED.engine, image="sglang:0.5.24", version="0.5.24", env=({"name": "A", "value": "1"},))
NEXT = Arm(name="next", engine=OWN)
RESOLVED = (
    "version is 0.5.24, but 0.5.23 on the baseline",
    "chunked_prefill_size is 8192, but 4096 on the baseline",
)


def rounds(*differs: str, differing: int = 0) -> tuple[Round, ...]:
    return (Round(replicates=(ReplicateRecord(arm="next", differs=differs, differing=differing or len(differs)),)),)


def test_an_arm_that_shares_the_engine_differs_in_nothing() -> None:
    assert engine_differences(SHARED, BASE, rounds(*RESOLVED)) == EngineDifferences({})


def test_image_and_variables_are_the_specs_and_all_else_is_what_the_servers_resolved() -> None:
    found = engine_differences(SHARED, NEXT, rounds(*RESOLVED))
    assert list(found.named) == ["image", "A", "version", "--chunked-prefill-size"]
    assert found.named["--chunked-prefill-size"] == RESOLVED[1]
    assert found.in_words("next") == "next differs in image, A, version and --chunked-prefill-size"


def test_what_no_round_has_shown_is_not_told() -> None:
    found = engine_differences(SHARED, NEXT, ())
    assert found.in_words("next") == "next differs in image and A"


def test_many_are_counted() -> None:
    found = engine_differences(SHARED, NEXT, rounds(*RESOLVED, "dtype is half, but auto on the baseline", differing=21))
    assert found.in_words("next") == "next differs in image, A, version, --chunked-prefill-size and 19 more"
    assert found.sentences[-1] == "18 more arguments that the servers resolved"


def test_another_engine_is_named_with_its_version() -> None:
    other = Arm(name="next", engine=replace(OWN, type="vLLM", version="0.33.0"))
    assert (
        engine_differences(SHARED, other, ()).named["engine"]
        == "engine is vLLM 0.33.0, but SGLang 0.5.23 on the baseline"
    )
