"""Which targets hand out what a head reads, and what a promotion takes from those who send requests."""

from dataclasses import replace

import pytest
from tests.support import jax_servers
from tests.support.messages import Says
from tests.support.rendered import EXAMPLES
from tests.unit.preflight.builders import TARGET, TARGET_FACTS, candidate, noted, refused, server, silent

from paceline.cli import main
from paceline.core import Arm, ModelFacts, Server
from paceline.engines import ENGINES
from paceline.preflight import findings

GLM = {"architectures": ("Glm4MoeForCausalLM",)}


def vllm(*args: str, **engine: object) -> Server:
    return server(*args, **{"type": "vLLM", "version": "0.33.0", **engine})


class TestTargetHandsOut:
    rule = "target-hands-out"

    @pytest.mark.parametrize("algorithm", ["EAGLE3", "DFLASH", "DSPARK"])
    def test_a_target_without_the_interface(self, algorithm: str) -> None:
        finding = refused(self.rule, on=vllm(), arm=candidate(algorithm), target=GLM)
        assert finding.path == "engine.version"
        assert "spec.engine.eagle3Targets: [Glm4MoeForCausalLM]" in finding.fix

    def test_an_image_that_adds_it(self) -> None:
        silent(self.rule, on=vllm(eagle3_targets=("Glm4MoeForCausalLM",)), target=GLM)

    @pytest.mark.parametrize("on", [vllm(version="0.34.0"), vllm("--model-impl=transformers"), server()])
    def test_where_it_is_not_known(self, on: Server) -> None:
        silent(self.rule, on=on, target=GLM)

    @pytest.mark.parametrize("algorithm", ["EAGLE", "STANDALONE"])
    def test_a_head_that_reads_none(self, algorithm: str) -> None:
        silent(self.rule, on=vllm(), arm=candidate(algorithm), target=GLM)

    @pytest.mark.parametrize(
        "name", ["LlamaForCausalLM", "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM", "GptOssForCausalLM", "BrandNew"]
    )
    def test_what_has_it_and_what_transformers_may_serve(self, name: str) -> None:
        silent(self.rule, on=vllm(), target={"architectures": (name,)})


class TestRequestsAreAnswered:
    rule = "requests-are-answered"

    def test_what_vllm_refuses_once_it_speculates(self, says: Says) -> None:
        says(noted(self.rule, on=vllm()).problem)

    @pytest.mark.parametrize("algorithm", ["EAGLE3", "NEXTN", "DFLASH"])
    def test_what_sglang_jax_drops(self, algorithm: str, says: Says) -> None:
        on = replace(server(), engine=jax_servers.server().engine)
        says(noted(self.rule, on=on, arm=candidate(algorithm)).problem)

    def test_on_sglang_nothing_is_lost(self) -> None:
        silent(self.rule)

    def test_without_a_candidate_nothing_changes(self) -> None:
        arms = (Arm(name="baseline"),)
        assert findings(vllm(), arms, {TARGET: TARGET_FACTS}) == ()

    def test_it_is_told_of_a_target_of_which_nothing_else_is_known(self) -> None:
        arms = (Arm(name="baseline"), candidate("NGRAM", source=None))
        (finding,) = findings(vllm(), arms, {TARGET: ModelFacts()})
        assert (finding.rule, finding.blocks) == (self.rule, False)


def test_paceline_plan_tells_it_before_anything_is_applied(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(EXAMPLES / "qwen3-coder-30b-vllm.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Once a candidate is promoted:")
    assert "min_p or logit_bias" in lines[at + 1]
    assert main(["plan", str(EXAMPLES / "qwen3-coder-next.yaml")]) == 0
    assert "Once a candidate" not in capsys.readouterr().out


def test_most_targets_that_vllm_serves_by_itself_are_known_either_way() -> None:
    listed = ENGINES["vLLM"].without_hidden_states(vllm())
    assert len(listed) > 100
    assert not listed & {"LlamaForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV3ForCausalLM", "Gemma4ForCausalLM"}
