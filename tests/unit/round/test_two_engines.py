"""A round whose arms have other engines: SGLang, another release of it, and vLLM, on one port each."""

import dataclasses
from pathlib import Path

from tests.support.rounds import arm_command
from tests.support.running import free_port
from tests.unit.round.pod import CODE_1, Start
from tests.unit.round.test_round import emulated
from tests.unit.round.test_vllm_round import ALIKE, BASE, PATH, VLLM, command

from paceline.engines import ENGINES
from paceline.evidence import RoundPlan


def test_they_are_measured_one_after_another_and_told_apart(start: Start, models: Path, port: int) -> None:
    def apart(plan: RoundPlan) -> RoundPlan:
        vllm_port = free_port()
        first, second, other = plan.arms
        argv = (*emulated(models, port, "next").argv, "--chunked-prefill-size=2048")
        base = command(models, vllm_port, BASE, dataclasses.replace(ALIKE, served_name="pair"))
        probe = VLLM.probe("0.33.0")
        other = arm_command(
            "vllm", *base.argv, engine="vLLM", engine_version="0.33.0", port=vllm_port, compared=VLLM.compared,
            unseen=probe.unseen, plain=True, held=("kv_cache_dtype", "quantization"), expected=base.expected,
        )  # fmt: skip
        second = dataclasses.replace(second, argv=argv, plain=True, held=("dtype", "page_size"))
        moved = (*ENGINES["SGLang"].moved(()), *VLLM.moved(()), "port")
        return dataclasses.replace(plan, arms=(first, second, other), moved=moved)

    others = (emulated(models, port, name, "--x") for name in ("next", "vllm"))
    arms = (emulated(models, port, "baseline", speculative_algorithm=None), *others)
    outcome = start(arms, CODE_1, change=apart, PATH=PATH).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    baseline, following, vllm = outcome.result.replicates
    assert outcome.result.engine_version == baseline.version == "0.5.23+emulated"
    assert [one.name for one in following.differs or ()] == ["chunked_prefill_size"]
    assert following.differing == 1
    assert vllm.version.startswith("0.33.0")
    assert vllm.differs == ()
