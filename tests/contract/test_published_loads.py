"""Numbers that others have published: the emulator has them, and the gate finds what their authors found.

On simulated clocks, from requests to verdict by the operator's own code (tests/support/simulated.py). The sources and
their words are in tests/support/published_loads.py, what is assumed besides in make_loads.py.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import pytest
from tests.contract.make_loads import SGLANG, VLLM
from tests.support.published_loads import (
    ANSWER,
    DYNAMIC_AT_1,
    DYNAMIC_AT_8,
    LLM_D_BASELINE,
    LLM_D_EAGLE3,
    LLM_D_FIRST_TOKEN,
    LLM_D_OUTPUT,
    SCHEDULE,
    SPEED_UPS,
    STATIC,
    TREE,
    Stage,
)
from tests.support.simulated import Load, Sent, closed, decided, measured, rated, served

from paceline import core, gate
from paceline.core import BASELINE, ArmOutcome, Outcome
from paceline_emulator import noise, profile
from paceline_emulator.engine import Engine
from paceline_emulator.models import Model
from paceline_emulator.profile import Profile, Shape
from paceline_emulator.vllm import profiles as vllm_profiles
from paceline_emulator.vllm.launch import Speculation
from paceline_emulator.vllm.server import moving, seats

CLOSE = 0.03
RULE = core.Gate(decide_after_rounds=(3, 5, 8))


@cache
def of(directory: str, name: str) -> Profile:
    where = {"sglang": SGLANG, "vllm": VLLM}[directory]
    return profile.read(json.loads((where / f"{name}.json").read_text()))


def engine(
    found: Profile, spec: Speculation | None, *, shape: Shape | None = None, rest: float = 1.0, limit: int = 1024
) -> Engine:
    """As an emulated server makes it of its command line."""
    shape = shape or (spec.shape(spec.tokens) if spec else None)
    return Engine(
        paces=profile.paces(found, shape),
        limit=seats(limit, found, speculates=shape is not None),
        speculative=shape is not None,
        width=shape.width if shape else 1,
        log_interval=10,
        drafting=moving(spec, found, None, rest) if spec else None,
    )


def chain(tokens: int, method: str = "eagle3", schedule: tuple[tuple[int, ...], ...] = ()) -> Speculation:
    return Speculation(method=method, head=None, tokens=tokens, schedule=schedule)


@pytest.mark.parametrize(
    ("for_target", "config", "name"),
    [
        pytest.param(
            vllm_profiles.for_target,
            {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 5120, "num_hidden_layers": 64},
            "qwen3-32b-h200",
            id="llm-d",
        ),
        pytest.param(
            vllm_profiles.for_target,
            {
                "architectures": ["Qwen3_5MoeForConditionalGeneration"],
                "text_config": {"hidden_size": 3072, "num_hidden_layers": 48, "num_experts": 256},
            },
            "qwen3.5-122b-gb10",
            id="vllm#49548",
        ),
        pytest.param(
            profile.for_target,
            {
                "architectures": ["Qwen3_5ForConditionalGeneration"],
                "text_config": {"hidden_size": 5120, "num_hidden_layers": 64},
            },
            "qwen3.8-27b-b300",
            id="EAGLE-4",
        ),
    ],
)
def test_a_server_of_that_target_has_these_speeds(
    for_target: Callable[[Model], Profile], config: dict[str, object], name: str
) -> None:
    assert for_target(Model(path="m", config=config)).name == name


def test_what_is_known_by_its_range_alone_is_drawn_anew_for_each_point_and_the_same_again() -> None:
    drawn = [noise.within(24, 157, "pod", ["serve"], point) for point in range(200)]
    assert drawn == [noise.within(24, 157, "pod", ["serve"], point) for point in range(200)]
    assert 24 <= min(drawn) < 26
    assert 145 < max(drawn) <= 157


class TestLlmD:
    """vLLM, Qwen3-32B with an EAGLE3 head on two H200: faster up to 4 requests a second, full at 8, and slower."""

    arms: Mapping[str, Callable[[int], Engine]] = {
        BASELINE: lambda number: engine(of("vllm", "qwen3-32b-h200"), None),
        "eagle3": lambda number: engine(of("vllm", "qwen3-32b-h200"), chain(3)),
    }

    @pytest.mark.parametrize(
        ("arm", "stage"),
        [
            pytest.param(arm, stage, id=f"{arm} {stage.rate}/s")
            for arm, stages in ((BASELINE, LLM_D_BASELINE), ("eagle3", LLM_D_EAGLE3))
            for stage in stages
        ],
    )
    def test_a_stage_of_the_ladder(self, arm: str, stage: Stage) -> None:
        found = self.stage(self.arms[arm](0), stage)
        throughput = found.throughput_between(20, 60) if stage.answers_all else found.throughput
        assert 1000 * found.median_tpot == pytest.approx(stage.tpot, rel=CLOSE)
        assert throughput == pytest.approx(stage.throughput, rel=CLOSE)

    def stage(self, running: Engine, stage: Stage) -> Load:
        """Answers of as many tokens as the table's tokens a second come to, 244 to 269, at equal distances: what the
        draw of lengths added there is left out. Of a full server: as many requests as it has under way."""
        if not stage.answers_all:
            under_way = round(stage.under_way)
            return served(running, [32] * 3 * under_way, concurrency=under_way)
        arrivals = [number / stage.rate for number in range(60 * stage.rate)]
        return served(running, [round(stage.throughput / stage.rate)] * len(arrivals), arrivals=arrivals)

    @pytest.mark.parametrize("rate", LLM_D_FIRST_TOKEN)
    def test_up_to_four_a_second_it_is_promoted(self, rate: int) -> None:
        assert self.verdict([rated(rate, LLM_D_OUTPUT)]).winner == "eagle3"

    def test_at_eight_a_second_it_is_not(self) -> None:
        assert self.verdict([rated(8, LLM_D_OUTPUT)]).outcome is not Outcome.PROMOTE

    def test_the_baseline_takes_over_between_four_and_eight_a_second(self) -> None:
        """In closed loops of as many requests as each rate keeps under way."""
        at = {stage.rate: round(stage.under_way) for stage in LLM_D_EAGLE3}
        loads = [closed(at[rate], 96) for rate in (1, 4, 8)]
        found = measured(self.arms, loads, RULE)
        by_name = {load.workload.name: gate.LoadLevel(concurrency=load.workload.concurrency) for load in loads}
        crossing = gate.crossover(RULE, list(self.arms), by_name, found)
        assert (crossing.crossing, crossing.between) == (gate.Crossing.BASELINE_TAKES_OVER, (at[4], at[8]))
        slower = crossing.results[-1].effects["eagle3"].mean
        assert slower.lower < LLM_D_EAGLE3[-1].throughput / LLM_D_BASELINE[-1].throughput < slower.upper

    def verdict(self, loads: list[Sent]) -> core.Verdict:
        """First tokens decide nothing: those published, 0.96 to 1.15 times the baseline's, are not emulated."""
        rule = replace(RULE, limits=(core.Limit(metric="meanTTFT", max_increase=2.0),))
        return decided(list(self.arms), loads, rule, measured(self.arms, loads, rule))


class TestVllm49548:
    """vLLM's schedule of depths on one GB10: fine alone, and a collapse where it takes the drafts away."""

    schedule = chain(2, "mtp", tuple(map(tuple, SCHEDULE)))
    static = chain(2, "mtp")

    def throughput(self, spec: Speculation, concurrency: int, rest: float = 1.0) -> float:
        running = engine(of("vllm", "qwen3.5-122b-gb10"), spec, rest=rest)
        return served(running, [ANSWER] * concurrency, concurrency=concurrency).throughput

    @pytest.mark.parametrize("concurrency", [1, 8])
    def test_always_two_tokens(self, concurrency: int) -> None:
        assert self.throughput(self.static, concurrency) == pytest.approx(STATIC[concurrency], rel=CLOSE)

    def test_the_schedule_alone(self) -> None:
        assert self.throughput(self.schedule, 1) == pytest.approx(DYNAMIC_AT_1, rel=CLOSE)

    @pytest.mark.parametrize("end", [0, 1], ids=["worst", "best"])
    def test_the_schedule_at_eight(self, end: int) -> None:
        rest = self.costs().resting[end]
        assert self.throughput(self.schedule, 8, rest) == pytest.approx(DYNAMIC_AT_8[end], rel=CLOSE)

    def costs(self) -> profile.Scheduled:
        found = of("vllm", "qwen3.5-122b-gb10").scheduled
        assert found
        return found

    def arms(self) -> Mapping[str, Callable[[int], Engine]]:
        low, high = self.costs().resting
        target = of("vllm", "qwen3.5-122b-gb10")
        return {
            BASELINE: lambda number: engine(target, None),
            "static": lambda number: engine(target, self.static),
            "schedule": lambda number: engine(
                target, self.schedule, rest=low * (high / low) ** random.Random(number).random()
            ),
        }

    def test_always_two_tokens_win(self) -> None:
        verdict = self.verdict(self.arms())
        assert verdict.winner == "static"
        assert verdict.arms["schedule"].outcome is not ArmOutcome.PROMOTABLE

    def test_the_schedule_is_rejected_for_the_load_beyond_its_threshold_and_faster_on_the_other(self) -> None:
        arm = self.verdict({name: arm for name, arm in self.arms().items() if name != "static"}).arms["schedule"]
        assert (arm.outcome, arm.workloads["chat@1"].lower > 1) == (ArmOutcome.REJECTED, True)
        assert "chat@8" in arm.message

    def verdict(self, arms: Mapping[str, Callable[[int], Engine]]) -> core.Verdict:
        loads = [closed(1, ANSWER), closed(8, ANSWER)]
        return decided(list(arms), loads, RULE, measured(arms, loads, RULE))


class TestEagle4:
    """SGLang, Qwen3.8-27B on four B300: `Leave speculation on`."""

    arms: Mapping[str, Callable[[int], Engine]] = {
        BASELINE: lambda number: engine(of("sglang", "qwen3.8-27b-b300"), None),
        "eagle-4": lambda number: engine(
            of("sglang", "qwen3.8-27b-b300"), None, shape=Shape(steps=TREE[0], branches=TREE[1], width=TREE[2])
        ),
    }

    @pytest.mark.parametrize("concurrency", SPEED_UPS)
    def test_a_speed_up(self, concurrency: int) -> None:
        plain, faster = (
            served(fresh(0), [128] * 5 * concurrency, concurrency=concurrency).throughput
            for fresh in self.arms.values()
        )
        assert faster / plain == pytest.approx(SPEED_UPS[concurrency], rel=CLOSE)

    def test_it_is_promoted_at_all_three_loads_and_the_baseline_takes_over_nowhere(self) -> None:
        loads = [closed(concurrency, 64) for concurrency in SPEED_UPS]
        found = measured(self.arms, loads, RULE)
        verdict = decided(list(self.arms), loads, RULE, found)
        assert verdict.winner == "eagle-4"
        for load in loads:
            shown = verdict.arms["eagle-4"].workloads[load.workload.name]
            assert shown.ratio == pytest.approx(SPEED_UPS[load.workload.concurrency], rel=CLOSE)
        by_name = {load.workload.name: gate.LoadLevel(concurrency=load.workload.concurrency) for load in loads}
        assert gate.crossover(RULE, list(self.arms), by_name, found).crossing is gate.Crossing.SPECULATION_FASTER
