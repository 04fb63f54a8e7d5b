"""Each rule: what it refuses, and the nearest thing that it must not refuse."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.messages import Says
from tests.unit.preflight.builders import (
    HEAD,
    HEAD_FACTS,
    NARROW,
    TARGET,
    TARGET_FACTS,
    WIDE,
    candidate,
    noted,
    refused,
    server,
    silent,
)

from paceline.core import Arm, Custom, Server
from paceline.engines import ENGINES
from paceline.preflight import ModelFacts, findings, model_facts
from paceline.preflight.rules import POOL_RULES, pair_rules
from paceline_emulator.hub.models import QWEN3_CODER_NEXT_FP8
from paceline_emulator.hub.published import GLM_4_7_FLASH, GLM_4_7_FP8, MINIMAX_M2_5


def test_the_published_pair_is_not_refused() -> None:
    arms = (Arm(name="baseline"), candidate(), replace(candidate(tree=WIDE), name="wide"))
    everything = findings(server("--attention-backend=triton"), arms, {TARGET: TARGET_FACTS, HEAD: HEAD_FACTS})
    assert {finding.rule: finding.blocks for finding in everything} == {
        "aux-layers-are-the-heads": False,
        "positions-reach": False,
    }
    fork = server("--attention-backend=triton", version="0.5.6", eagle3_targets=("Qwen3NextForCausalLM",))
    everything = findings(fork, arms, {TARGET: TARGET_FACTS, HEAD: HEAD_FACTS})
    assert {finding.rule: finding.blocks for finding in everything} == {"positions-reach": False}


def test_no_rule_knows_what_an_algorithm_without_a_word_does_with_its_head() -> None:
    """Another size, another vocabulary, heads that cannot be split: measured, never assumed."""
    odd = {"hidden_size": 4096, "vocab_size": 1000, "num_attention_heads": 3, "num_key_value_heads": 3}
    named, custom = candidate(), replace(candidate(tree=None), custom=Custom())
    facts = {TARGET: TARGET_FACTS, HEAD: replace(HEAD_FACTS, **odd)}
    assert any(finding.blocks for finding in findings(server(), (Arm(name="baseline"), named), facts))
    assert not any(finding.blocks for finding in findings(server(), (Arm(name="baseline"), custom), facts))


def test_every_finding_says_what_why_and_what_to_change() -> None:
    wrong = replace(HEAD_FACTS, hidden_size=4096, target_hidden_size=None, has_d2t=False)
    for finding in findings(server(tp=3), (candidate("EAGLE"), candidate()), {TARGET: TARGET_FACTS, HEAD: wrong}):
        assert all((finding.problem, finding.why, finding.fix))


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_are_unique(engine: str) -> None:
    """An engine's rule replaces the shared one of its id, which stays in its place."""
    ids = [*(rule.id for rule in POOL_RULES), *(rule.id for rule in pair_rules(engine))]
    assert len(ids) == len(set(ids))
    own = ENGINES[engine].model_rules
    assert set(own) <= set(pair_rules(engine))


def test_nothing_is_said_about_what_is_not_known() -> None:
    assert findings(server(), (candidate(),), {}) == ()
    assert findings(server(), (candidate(),), {TARGET: ModelFacts(), HEAD: ModelFacts()}) == ()


def test_a_head_of_which_nothing_is_known_is_told(says: Says) -> None:
    (finding,) = findings(server(), (candidate(),), {TARGET: ModelFacts()})
    assert (finding.rule, finding.blocks) == ("facts-are-there", False)
    says(finding.problem)


class TestTargetTakesEagle3:
    rule = "target-takes-eagle3"

    def test_an_old_version_has_no_hook_for_a_new_target(self, says: Says) -> None:
        target = {"architectures": ("Qwen3MoeForCausalLM",)}
        finding = refused(self.rule, on=server(version="0.4.5"), target=target)
        assert finding.path == "engine.version"
        says(finding.problem, finding.fix)

    def test_a_fork_declares_the_hook_that_it_adds(self) -> None:
        refused(self.rule, on=server(version="0.5.6"))
        silent(self.rule, on=server(version="0.5.6", eagle3_targets=("Qwen3NextForCausalLM",)))

    def test_upstream_has_it_by_now(self) -> None:
        silent(self.rule)

    def test_other_algorithms_need_none(self) -> None:
        silent(self.rule, on=server(version="0.5.6"), arm=candidate("STANDALONE"))


class TestAlgorithmFitsHead:
    rule = "algorithm-fits-head"

    @pytest.mark.parametrize(
        ("algorithm", "architecture", "made_for"),
        [
            ("EAGLE", "LlamaForCausalLMEagle3", "EAGLE3"),
            ("EAGLE3", "Qwen2ForCausalLMEagle", "EAGLE"),
            ("EAGLE3", "DFlashDraftModel", "DFLASH"),
        ],
    )
    def test_a_head_is_made_for_one(self, algorithm: str, architecture: str, made_for: str) -> None:
        finding = refused(self.rule, arm=candidate(algorithm), head={"architectures": (architecture,)})
        assert (finding.arm, finding.path) == ("narrow", "draft.algorithm")
        assert f" {made_for}, " in finding.fix

    def test_unknown_classes_are_the_measurements_business(self) -> None:
        silent(self.rule)
        silent(self.rule, head={"architectures": ("SomethingNewEagle3",)})


class TestHeadIsNoFullModel:
    rule = "head-is-no-full-model"

    def test_the_target_drafts_for_itself(self, says: Says) -> None:
        finding = refused(self.rule, arm=candidate(source=TARGET))
        assert finding.path == "draft.source"
        says(finding.problem)

    @pytest.mark.parametrize("architecture", ["Qwen3NextForCausalLM", "LlamaForCausalLM"])
    def test_a_head_that_is_a_whole_model(self, architecture: str, says: Says) -> None:
        says(refused(self.rule, head={"architectures": (architecture,), "num_hidden_layers": 28}).problem)

    def test_a_small_model_of_its_own_drafts_with_standalone(self) -> None:
        small = {"architectures": ("Qwen3ForCausalLM",), "num_hidden_layers": 28}
        silent(self.rule, arm=candidate("STANDALONE"), head=small)

    def test_layers_of_the_target_may_be_named_by_its_name(self) -> None:
        silent(self.rule, arm=candidate("NEXTN", TARGET))


class TestHiddenSizesAgree:
    rule = "hidden-sizes-agree"

    def test_a_head_for_another_size(self, says: Says) -> None:
        finding = refused(self.rule, head={"hidden_size": 4096, "target_hidden_size": None})
        says(finding.problem, finding.fix)

    def test_a_head_may_be_narrower_than_the_target_it_says_it_reads(self) -> None:
        silent(self.rule, head={"hidden_size": 1024, "target_hidden_size": 2048})


class TestVocabulariesAgree:
    rule = "vocabularies-agree"

    @pytest.mark.parametrize(
        ("algorithm", "changes", "wrong"),
        [
            ("EAGLE3", {"vocab_size": 32000}, True),
            ("EAGLE3", {"vocab_size": 152064}, False),  # the same, padded
            ("EAGLE3", {"draft_vocab_size": 200_000}, True),
            ("STANDALONE", {"vocab_size": 152064, "draft_vocab_size": None}, True),  # the engine compares them
            ("STANDALONE", {"draft_vocab_size": None}, False),
        ],
    )
    def test_vocabularies(self, algorithm: str, changes: dict[str, object], wrong: bool) -> None:
        (refused if wrong else silent)(self.rule, arm=candidate(algorithm), head=changes)


class TestDraftTokensAreMapped:
    rule = "draft-tokens-are-mapped"

    def test_a_small_draft_vocabulary_needs_d2t(self, says: Says) -> None:
        says(refused(self.rule, head={"has_d2t": False}).problem)

    @pytest.mark.parametrize("changes", [{"has_d2t": True}, {"has_d2t": False, "draft_vocab_size": 151936}])
    def test_it_is_there_or_not_needed(self, changes: dict[str, object]) -> None:
        silent(self.rule, head=changes)


class TestWeightsAreThere:
    rule = "weights-are-there"

    def test_what_the_loader_would_skip_is_named(self, says: Says) -> None:
        says(refused(self.rule, head={"lacks": ("fc", "lm_head")}).problem)

    def test_all_are_there(self) -> None:
        silent(self.rule)


class TestMlaDraftsChains:
    rule = "mla-drafts-chains"
    flash = model_facts(GLM_4_7_FLASH, 1)

    def test_a_tree_on_a_backend_that_refuses_it(self, says: Says) -> None:
        finding = refused(
            self.rule, on=server("--attention-backend=flashinfer"), arm=candidate(tree=WIDE), target=self.flash
        )
        assert (finding.arm, finding.path) == ("narrow", "tree.topK")
        says(finding.problem)

    def test_a_chain_or_a_backend_that_branches(self) -> None:
        silent(self.rule, on=server("--attention-backend=flashinfer"), target=self.flash)
        on = server("--attention-backend=triton")
        silent(self.rule, on=on, arm=candidate(tree=WIDE), target=self.flash)

    def test_other_targets_branch(self) -> None:
        silent(self.rule, arm=candidate(tree=WIDE))


class TestNextnLayersAreThere:
    rule = "nextn-layers-are-there"

    @pytest.mark.parametrize("source", [None, TARGET])
    def test_a_target_without(self, source: str | None, says: Says) -> None:
        says(refused(self.rule, arm=candidate("NEXTN", source)).problem)

    def test_a_target_with(self) -> None:
        silent(
            self.rule,
            arm=candidate("MTP", None),
            target=model_facts(GLM_4_7_FP8, 1, {"model.layers.92.eh_proj.weight"}),
        )

    def test_a_quantiser_has_dropped_them(self, says: Says) -> None:
        """llm-compressor#1843: an acceptance length of 1.00."""
        target = model_facts({"mtp_num_hidden_layers": 1}, 1, {"model.layers.0.mlp.up_proj.weight"})
        says(refused(self.rule, arm=candidate("MTP", None), target=target).problem)

    def test_a_head_of_its_own(self) -> None:
        silent(self.rule, arm=candidate("NEXTN"))


MLA_TARGET: dict[str, Any] = {
    "architectures": ("KimiK25ForConditionalGeneration",),
    "kv_lora_rank": 512,
    "num_attention_heads": 64,
    "attention_layers": (),
}
LATENT_HEAD: dict[str, Any] = {"architectures": ("Eagle3DeepseekV2ForCausalLM",), "kv_lora_rank": 512}


class TestBackendsAttend:
    """Kimi K2 with a head of the Llama kind (sglang#23490), and the matrix around it."""

    @pytest.mark.parametrize("backend", ["trtllm_mha", "hpc_ops"])
    def test_a_latent_target_needs_a_backend_for_it(self, backend: str, says: Says) -> None:
        on = server(f"--attention-backend={backend}")
        says(refused("backend-attends-target", on=on, target=MLA_TARGET).problem)

    @pytest.mark.parametrize("backend", ["trtllm_mla", "cutedsl_mla", "flashmla", "dsa"])
    def test_and_the_other_way_round(self, backend: str) -> None:
        refused("backend-attends-target", on=server(f"--decode-attention-backend={backend}"))

    @pytest.mark.parametrize("backend", ["triton", "fa3", "flashinfer", "brand_new"])
    def test_most_do_both(self, backend: str) -> None:
        silent("backend-attends-target", on=server(f"--attention-backend={backend}"), target=MLA_TARGET)
        silent("backend-attends-target", on=server(f"--attention-backend={backend}"))

    @pytest.mark.parametrize(
        "on", [server("--attention-backend=trtllm_mla"), server(product="NVIDIA-GB300")], ids=["named", "by itself"]
    )
    def test_a_head_of_the_other_kind_needs_a_backend_of_its_own(self, on: Server, says: Says) -> None:
        rule = "backend-attends-draft"
        says(refused(rule, on=on, target=MLA_TARGET).fix)
        silent(rule, on=on, target=MLA_TARGET, head=LATENT_HEAD)
        silent(rule, on=on, target=MLA_TARGET, arm=candidate(args=("--speculative-draft-attention-backend=triton",)))

    def test_on_hopper_the_engine_takes_one_that_does_both(self) -> None:
        silent("backend-attends-draft", target=MLA_TARGET)

    def test_mixed_layers_on_blackwell(self) -> None:
        rule = "backend-attends-target"
        refused(rule, on=server("--attention-backend=fa3", product="NVIDIA-B200"))
        silent(rule, on=server("--attention-backend=triton", product="NVIDIA-B200"))
        silent(rule, on=server("--attention-backend=fa3"))


class TestOtherNamesOfMTP:
    @pytest.mark.parametrize("algorithm", ["EAGLE", "EAGLE3", "STANDALONE"])
    def test_an_assistant_or_a_nextn_repository_is_mtp(self, algorithm: str) -> None:
        """vllm#42005, sglang#24436 (Gemma 4); lmsys' own DeepSeek-V3-NextN."""
        for made_of in ("Gemma4AssistantForCausalLM", "DeepseekV3ForCausalLMNextN"):
            head = {"architectures": (made_of,), "num_hidden_layers": 4}
            assert " MTP, " in refused("algorithm-fits-head", arm=candidate(algorithm), head=head).fix
            silent("head-is-no-full-model", arm=candidate(algorithm), head=head)

    @pytest.mark.parametrize("algorithm", ["MTP", "NEXTN"])
    def test_both_words_go(self, algorithm: str) -> None:
        silent("algorithm-fits-head", arm=candidate(algorithm), head={"architectures": ("Qwen3NextForCausalLMMTP",)})

    def test_the_target_as_its_own_draft(self, says: Says) -> None:
        """sglang#30296: EAGLE with the target's path."""
        rule, arm = "head-is-no-full-model", candidate("EAGLE", TARGET)
        target = {"nextn_layers": 1, "has_nextn": True}
        says(refused(rule, arm=arm, target=target).fix, refused(rule, arm=arm).fix)

    def test_the_first_heads_announce_the_class_of_their_target(self) -> None:
        """EAGLE#60: SafeAILab's heads of one layer."""
        head = {"architectures": ("LlamaForCausalLM",), "num_hidden_layers": 1}
        assert "[LlamaForCausalLMEagle]" in refused("head-is-no-full-model", arm=candidate("EAGLE"), head=head).fix


class TestAuxStatesAreRead:
    rule = "aux-states-are-read"

    @pytest.mark.parametrize("named", [{}, {"aux_layers": (1, 23, 44)}, {"num_aux_hidden_states": 3}])
    def test_three_are_usual(self, named: dict[str, Any]) -> None:
        silent(self.rule, head={"weight_sizes": {"fc": 3 * 2048}, "hidden_size": 2048, **named})

    def test_four_have_to_be_named_where_the_engine_looks(self, says: Says) -> None:
        """vllm#54526: a head of four layers whose number the engine does not find."""
        four = {"weight_sizes": {"fc": 4 * 2048}, "hidden_size": 2048}
        says(refused(self.rule, head=four).problem)
        silent(self.rule, head={**four, "aux_layers": (1, 12, 23, 44)})
        refused(self.rule, on=VLLM, head={**four, "aux_layers": (1, 12, 23, 44), "speculators": "eagle3"})

    def test_the_states_are_the_targets(self) -> None:
        """vllm#18906: a head of another size than its target's."""
        silent(self.rule, head={"weight_sizes": {"fc": 3 * 8192}, "hidden_size": 6144, "target_hidden_size": 8192})

    def test_an_eagle_head_reads_an_embedding_and_a_state(self) -> None:
        head = {"architectures": ("LlamaForCausalLMEagle",), "hidden_size": 2048}
        silent(self.rule, arm=candidate("EAGLE"), head={**head, "weight_sizes": {"fc": 4096}})
        refused(self.rule, arm=candidate("EAGLE"), head={**head, "weight_sizes": {"fc": 6144}})


VLLM = server(type="vLLM", version="0.33.0")
FIRST_RUNNER = server(type="vLLM", version="0.33.0", env=({"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "0"},))


class TestVLLM:
    def test_a_draft_does_not_shorten_the_context(self) -> None:
        """vllm#7859: a draft of 8k for a target of 128k."""
        rule, arm, head = "context-stays", candidate("STANDALONE"), {"max_position_embeddings": 8192}
        finding = refused(rule, on=VLLM, arm=arm, head=head)
        assert finding.path == "engine.args"
        assert "--max-model-len=8192" in finding.fix
        silent(rule, on=server("--max-model-len=8k", type="vLLM", version="0.33.0"), arm=arm, head=head)
        silent(rule, on=FIRST_RUNNER, arm=arm, head=head)
        silent(rule, on=VLLM, head=head)

    @pytest.mark.parametrize(("layers", "fits"), [(1, True), (2, False), (5, True)])
    def test_layers_for_further_tokens_divide_them(self, layers: int, fits: bool) -> None:
        """vllm#52688: 3 tokens of 2 layers."""
        (silent if fits else refused)(
            "layers-divide-tokens", on=VLLM, arm=candidate("MTP", None), target={"nextn_layers": layers}
        )

    def test_a_head_that_drafts_in_parallel_is_driven_by_the_first_runner(self) -> None:
        head = {"speculators": "peagle", "architectures": ("PEagleDraftModel",)}
        assert "VLLM_USE_V2_MODEL_RUNNER" in refused("speculator-is-read", on=VLLM, head=head).fix
        silent("speculator-is-read", on=FIRST_RUNNER, head=head)


class TestRowsAreAnnounced:
    rule = "rows-are-announced"

    @pytest.mark.parametrize("module", ["lm_head", "d2t"])
    def test_a_vocabulary_of_another_export(self, module: str, says: Says) -> None:
        says(refused(self.rule, head={"weight_sizes": {module: 16000}, "draft_vocab_size": 32000}).problem)
        silent(self.rule, head={"weight_sizes": {module: 32000}, "draft_vocab_size": 32000})

    def test_an_embedding(self) -> None:
        refused(self.rule, head={"weight_sizes": {"embed_tokens": 151669}, "vocab_size": 151936})

    def test_whole_models_pad_theirs(self) -> None:
        arm = candidate("STANDALONE")
        silent(self.rule, arm=arm, head={"weight_sizes": {"embed_tokens": 152064}, "vocab_size": 151936})


def test_a_layer_for_further_tokens_reads_an_embedding_and_a_state() -> None:
    arm = candidate("NEXTN")
    refused("two-states-are-read", arm=arm, head={"weight_sizes": {"eh_proj": 7168}, "hidden_size": 7168})
    silent("two-states-are-read", arm=arm, head={"weight_sizes": {"eh_proj": 14336}, "hidden_size": 7168})


def test_quantised_weights_are_announced() -> None:
    rule = "scales-are-announced"
    refused(rule, head={"quantized_weights": True, "quantization": None})
    silent(rule, head={"quantized_weights": True, "quantization": "fp8"})
    silent(rule, head={"quantized_weights": False, "quantization": "bitsandbytes"})


def test_a_head_names_its_class() -> None:
    refused("has-a-class", head={"architectures": ()})


class TestBlocksFitHead:
    rule = "blocks-fit-head"

    def test_dspark_needs_a_rank(self, says: Says) -> None:
        arm = candidate("DSPARK", tree=None, block_size=4)
        says(refused(self.rule, arm=arm, head={"architectures": ("DSparkDraftModel",), "markov_rank": 0}).problem)
        silent(self.rule, arm=arm, head={"architectures": ("DSparkDraftModel",), "markov_rank": 8})

    def test_blocks_longer_than_trained_for(self, says: Says) -> None:
        says(noted(self.rule, arm=candidate("DFLASH", tree=None, block_size=32), head={"block_size": 16}).fix)
        silent(self.rule, arm=candidate("DFLASH", tree=None, block_size=8), head={"block_size": 16})

    def test_a_target_of_another_depth(self, says: Says) -> None:
        arm = candidate("DFLASH", tree=None, block_size=8)
        says(noted(self.rule, arm=arm, head={"num_target_layers": 36}).problem)


class TestPositionsReach:
    rule = "positions-reach"

    def test_the_override_is_set_and_said(self, says: Says) -> None:
        finding = noted(self.rule)
        says(finding.problem, finding.why)

    def test_as_many_are_enough(self) -> None:
        silent(self.rule, head={"max_position_embeddings": 262144})


class TestDtypesAgree:
    rule = "dtypes-agree"

    def test_a_head_of_another_type(self) -> None:
        finding = refused(self.rule, head={"dtype": "float16"})
        assert finding.path == "engine.args"
        assert "--dtype=bfloat16" in finding.fix

    def test_said_once_for_both_or_the_same(self) -> None:
        silent(self.rule, on=server("--dtype=bfloat16"), head={"dtype": "float16"})
        silent(self.rule)


class TestQuantizationIsNotInherited:
    rule = "quantization-is-not-inherited"

    def test_the_head_is_quantised_with_its_target(self) -> None:
        noted(self.rule, on=server("--quantization=fp8"))

    def test_the_candidate_says_that_it_is_not(self) -> None:
        arm = replace(candidate(), args=("--speculative-draft-model-quantization=unquant",))
        silent(self.rule, on=server("--quantization=fp8"), arm=arm)

    def test_a_target_that_is_quantised_already(self) -> None:
        silent(self.rule, target={"quantization": "fp8"})


class TestRejectionSamplingNeedsOneVocabulary:
    rule = "rejection-sampling-needs-one-vocabulary"
    arm = replace(candidate(), args=("--speculative-use-rejection-sampling",))

    def test_a_head_that_proposes_from_a_part(self) -> None:
        finding = refused(self.rule, arm=self.arm)
        assert (finding.arm, finding.path) == ("narrow", "args")

    def test_a_head_that_proposes_from_all(self) -> None:
        silent(self.rule, arm=self.arm, head={"draft_vocab_size": 151936})

    def test_it_is_not_asked_for(self) -> None:
        silent(self.rule)


class TestTensorParallelDividesHeads:
    rule = "tensor-parallel-divides-heads"

    def test_heads_that_cannot_be_split_evenly(self, says: Says) -> None:
        finding = refused(self.rule, on=server(tp=3), head={"num_attention_heads": 3, "num_key_value_heads": 3})
        assert finding.path == "accelerator.tensorParallelSize"
        says(finding.problem)

    @pytest.mark.parametrize("size", [4, 8])
    def test_key_value_heads_may_be_repeated(self, size: int) -> None:
        silent(self.rule, on=server(tp=size))

    def test_key_value_heads_count_too(self, says: Says) -> None:
        says(refused(self.rule, target={"num_attention_heads": 24, "num_key_value_heads": 6}).problem)

    def test_each_group_of_attention_has_all_heads(self) -> None:
        target = {"num_attention_heads": 20, "num_key_value_heads": 4}
        refused(self.rule, on=server(tp=8), target=target)
        silent(self.rule, on=server("--attn-dp-size=4", "--enable-dp-lm-head", tp=8), target=target)

    def test_the_draft_is_split_as_well(self, says: Says) -> None:
        says(refused(self.rule, head={"num_attention_heads": 42}).problem)


class TestTensorParallelDividesBlocks:
    rule = "tensor-parallel-divides-blocks"
    next_fp8 = model_facts(QWEN3_CODER_NEXT_FP8, 1)

    def test_blocks_of_the_fp8_checkpoint_cannot_be_cut_eight_times(self, says: Says) -> None:
        finding = refused(self.rule, on=server(tp=8), target=self.next_fp8)
        assert finding.path == "accelerator.tensorParallelSize"
        says(finding.problem, finding.fix)

    def test_four_times_they_can(self) -> None:
        silent(self.rule, on=server(tp=4), target=self.next_fp8)

    def test_a_checkpoint_without_blocks_can(self) -> None:
        silent(self.rule, on=server(tp=8))
        silent(self.rule, on=server(tp=8), target=model_facts(GLM_4_7_FP8, 1))  # scaled by channel

    def test_whole_experts_on_each_gpu_are_not_cut(self) -> None:
        minimax = model_facts(MINIMAX_M2_5, 1)
        silent(self.rule, on=server(tp=4), target=minimax)
        assert "intermediate_size 1536 / 8 = 192" in refused(self.rule, on=server(tp=8), target=minimax).problem
        silent(self.rule, on=server("--ep-size=8", tp=8), target=minimax)


class TestCodeIsTrusted:
    rule = "code-is-trusted"

    def test_a_model_that_the_engine_does_not_have(self) -> None:
        target = {"custom_code": True, "architectures": ("NewForCausalLM",)}
        finding = refused(self.rule, target=target)
        assert finding.path == "engine.trustRemoteCode"
        silent(self.rule, on=server(trust_remote_code=True), target=target)

    def test_a_model_that_it_has_needs_none(self) -> None:
        noted(self.rule, target=model_facts(MINIMAX_M2_5, 1))

    def test_a_repository_without_code(self) -> None:
        silent(self.rule)


def test_arms_that_share_a_head_share_its_findings() -> None:
    arms = (candidate(), replace(candidate(tree=WIDE), name="wide"))
    wrong = replace(HEAD_FACTS, hidden_size=4096, target_hidden_size=None)
    everything = findings(server("--attention-backend=triton"), arms, {TARGET: TARGET_FACTS, HEAD: wrong})
    assert [finding.arm for finding in everything if finding.rule == "hidden-sizes-agree"] == ["narrow"]


def test_arms_of_one_shape_each_have_their_own() -> None:
    arms = (
        replace(candidate(tree=WIDE), name="one"),
        candidate(tree=NARROW),
        replace(candidate(tree=WIDE), name="two"),
    )
    everything = findings(server(), arms, {TARGET: model_facts(GLM_4_7_FLASH, 1)})
    assert [finding.arm for finding in everything if finding.rule == "mla-drafts-chains"] == ["one", "two"]
