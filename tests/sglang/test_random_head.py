"""A head that does not fit, on the real server: found out in one round, by the server's own numbers."""

import pytest
from tests.sglang.real import PARITY, Deployed, get, told

from paceline.engines import ENGINES


def test_the_real_server_was_measured(random_head: Deployed) -> None:
    assert random_head.run["status"]["engineVersion"] == "0.5.23"
    assert not random_head.run["status"].get("emulated")


def test_both_arms_resolved_alike_but_for_the_tree(random_head: Deployed) -> None:
    baseline, wide = random_head.resolved("baseline")[0], random_head.resolved("wide")[0]
    for key in ENGINES["SGLang"].compared:
        assert wide[key] == baseline[key], key
    tree = ("algorithm", "num_steps", "eagle_topk", "num_draft_tokens")
    assert [wide[f"speculative_{part}"] for part in tree] == ["EAGLE3", "3", "4", "8"]
    assert [baseline[f"speculative_{part}"] for part in tree] == ["null"] * 4


def test_nothing_accepted_is_a_measurement(random_head: Deployed) -> None:
    point = random_head.points("wide")[0]
    assert point["valid"], point["why"]
    assert float(point["acceptLength"]) == pytest.approx(1.0, abs=0.005)
    assert point["verifyCalls"] >= 100


def test_the_head_is_rejected_after_one_round(random_head: Deployed) -> None:
    verdict = random_head.run["status"]["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("Reject", "NothingAccepted")
    assert len(random_head.rounds) == 1


def test_it_answers_what_the_baseline_answers(random_head: Deployed) -> None:
    """The target decides every token, whatever the head proposes."""
    (baseline,), (wide,) = random_head.parity("baseline"), random_head.parity("wide")
    assert len(baseline["outputs"]) == 4 * PARITY["samples"]
    assert "unknown" not in wide, wide
    assert (wide["diverged"], wide["identical"] + wide["nearTies"]) == (0, PARITY["samples"])


def test_the_baseline_is_ready_and_answers_through_its_service(random_head: Deployed) -> None:
    container = get("deployment", "random-head-cpu")["spec"]["template"]["spec"]["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert random_head.pool["serving"]["arm"] == "baseline"
    answer = random_head.chat("Say something.")
    assert answer["model"] == "tiny-llama"
    assert 1 <= answer["usage"]["completion_tokens"] <= 8
    told.append(f"  answered through the Service: {answer['choices'][0]['message']['content']!r}")
