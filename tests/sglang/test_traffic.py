"""Traffic of one's own on the real server: chats, a parquet file, tools, an adapter, a JSON schema, a replayed log."""

import json
from itertools import pairwise

import pytest
from tests.sglang.measured import Measured

pytestmark = pytest.mark.timeout(3600)
ARMS = ("baseline", "chain")
LOADS = ("chats@1", "table@1", "tools@1", "style@1", "form@1", "sessions@1", "trace@1", "log@0.1/s")


def test_nothing_was_emulated_or_forced(traffic: Measured) -> None:
    assert traffic.run["status"]["engineVersion"] == "0.5.23"
    assert not traffic.run["status"].get("emulated")


def test_every_point_is_evidence(traffic: Measured) -> None:
    assert [point["workload"] for point in traffic.points("chain")] == [*LOADS] * len(traffic.rounds)
    assert {point["why"] for arm in ARMS for point in traffic.points(arm)} == {""}


def test_a_chat_is_sent_with_its_system_prompt_and_its_history(traffic: Measured) -> None:
    """Three questions of which a row of the table is one, two answers and the system prompt."""
    for one in traffic.rounds:
        inputs = {each["workload"]: float(each["mean"]) for each in one["inputs"]}
        assert inputs["chats@1"] > 2 * inputs["table@1"]


@pytest.mark.parametrize("arm", ARMS)
def test_trajectories_find_what_came_before_in_the_cache(traffic: Measured, arm: str) -> None:
    for load in ("sessions@1", "trace@1"):
        for point in (one for one in traffic.points(arm) if one["workload"] == load):
            assert 0.4 < float(point["cacheHitRate"]) < 1
            assert [(one["over"], one["requests"]) for one in point["contexts"]] == [(0, 20)]
        lengths = traffic.report(0, arm, load)["input_lens"]
        turns = traffic.report(0, arm, load)["turns"]
        assert all(later > one for (one, _), (later, turn) in pairwise(zip(lengths, turns, strict=True)) if turn)


@pytest.mark.parametrize("arm", ARMS)
def test_every_answer_has_the_form(traffic: Measured, arm: str) -> None:
    points = [point for point in traffic.points(arm) if point["workload"] == "form@1"]
    assert {point["malformed"] for point in points} == {0}
    for text in traffic.report(0, arm, "form@1")["generated_texts"]:
        assert set(json.loads(text)) == {"pure", "lines"}


@pytest.mark.parametrize("load", LOADS)
def test_speculation_answers_as_the_baseline_does(traffic: Measured, load: str) -> None:
    """Greedy, in fp32: under a grammar, behind a history and with an adapter, too."""
    texts = [traffic.report(0, arm, load)["generated_texts"] for arm in ARMS]
    assert texts[0] == texts[1]


def test_the_adapter_answers_otherwise_than_the_model(traffic: Measured) -> None:
    """The same questions."""
    plain, style = (traffic.report(0, "baseline", load)["generated_texts"] for load in ("table@1", "style@1"))
    assert plain != style


def test_the_log_is_replayed_and_its_goodput_counted(traffic: Measured) -> None:
    for arm in ARMS:
        for point in (one for one in traffic.points(arm) if one["workload"] == "log@0.1/s"):
            assert 0 <= point["goodRequests"] <= point["completed"] == 3
            assert (float(point["goodput"]) > 0) == (point["goodRequests"] > 0)


def test_acceptance_by_position_adds_up_to_the_length(traffic: Measured) -> None:
    """Of the same prompts, asked again after the load; later turns of a conversation are not."""
    turns = [point for point in traffic.points("chain") if "contexts" in point]
    assert [point["workload"] for point in turns if "acceptedAt" not in point] == ["sessions@1", "trace@1"] * 2
    for point in (one for one in traffic.points("chain") if one not in turns):
        shares = [float(share) for share in point["acceptedAt"]]
        assert shares == sorted(shares, reverse=True)
        assert 1 + sum(shares) == pytest.approx(float(point["acceptLength"]), abs=0.15)
