"""What a head names, on which release: refused, told or fine."""

from typing import Any

import pytest
from tests.support.messages import Says
from tests.unit.preflight.builders import HEAD_FACTS, finding_of, noted, refused, server, silent

from paceline.core import Server
from paceline.preflight import model_facts
from paceline_emulator.hub.published import GEMMA_4_31B, GLM_4_7_FP8, HEADS, QWEN3_CODER_30B_A3B

THERE, ATTEND, OWN = "aux-layers-are-there", "aux-layers-attend", "aux-layers-are-the-heads"
FORK = server(version="0.5.6", eagle3_targets=("Qwen3NextForCausalLM",))
UPSTREAM = server(version="0.5.23")
AFTER = server(version="0.5.24")
CODER_30B = model_facts(QWEN3_CODER_30B_A3B, 1)


@pytest.mark.parametrize(
    ("named", "on", "broken"),
    [
        ((), FORK, None),
        ((2, 26, 46), FORK, None),
        ((2, 22, 46), FORK, OWN),  # prefills before 23, verifies before 27
        ((3, 23, 47), FORK, THERE),
        ((), UPSTREAM, OWN),
        ((2, 26, 46), UPSTREAM, None),
        ((2, 22, 46), UPSTREAM, None),
        ((3, 23, 47), UPSTREAM, THERE),
        ((1, 23, 44), UPSTREAM, ATTEND),  # trained with SpecForge's own choice: let pass
        ((3, 23, 43), UPSTREAM, None),
    ],
)
def test_the_head_of_qwen3_coder_next(named: tuple[int, ...], on: Server, broken: str | None) -> None:
    for rule in (THERE, ATTEND, OWN):
        finding = finding_of(rule, on=on, head={"aux_layers": named})
        assert (finding is not None) == (rule == broken)
        assert finding is None or finding.blocks == (rule == THERE)


def test_the_published_head_names_none() -> None:
    assert (HEAD_FACTS.aux_layers, HEAD_FACTS.aux_layers_beside) == ((), ())


def test_a_layer_that_is_never_reached_is_told_with_what_to_name(says: Says) -> None:
    finding = refused(THERE, on=UPSTREAM, head={"aux_layers": (3, 23, 47)})
    assert "[2, 22, 46]" in finding.fix
    fork = refused(THERE, on=FORK, head={"aux_layers": (3, 23, 47)})
    says(finding.problem, finding.why, finding.fix, fork.why)


def test_a_layer_that_is_not_there_is_no_matter_of_counting(says: Says) -> None:
    says(refused(THERE, on=UPSTREAM, head={"aux_layers": (2, 30, 57)}).fix)


def test_a_newer_release_may_have_learnt_it() -> None:
    assert not noted(THERE, on=AFTER, head={"aux_layers": (3, 23, 47)}).blocks


def test_another_images_hook_is_believed() -> None:
    on = server(version="0.5.23", eagle3_targets=("Qwen3NextForCausalLM",))
    silent(THERE, on=on, head={"aux_layers": (3, 23, 47)})


def test_of_another_engine_only_the_targets_depth_is_known(says: Says) -> None:
    on = server(type="vLLM", version="0.33.0")
    silent(THERE, on=on, head={"aux_layers": (3, 23, 47)})
    says(refused(THERE, on=on, head={"aux_layers_beside": (3, 23, 58)}).problem)


def test_foreign_states_are_told_before_they_are_measured(says: Says) -> None:
    finding = noted(OWN, on=UPSTREAM)
    assert "[2, 26, 46]" in finding.fix
    says(finding.problem, finding.why, finding.fix)


def test_graphs_of_an_older_release_verify_with_other_layers(says: Says) -> None:
    says(noted(OWN, on=FORK, head={"aux_layers": (2, 22, 46)}).problem)
    eager = server("--disable-cuda-graph", version="0.5.6", eagle3_targets=("Qwen3NextForCausalLM",))
    silent(OWN, on=eager, head={"aux_layers": (2, 22, 46)})


def test_marks_that_stay_make_the_states_too_wide(says: Says) -> None:
    old = server(version="0.5.6")
    finding = refused(THERE, on=old, target=CODER_30B, head={"aux_layers": (3, 23, 43)})
    says(finding.problem, finding.fix)
    silent(THERE, on=UPSTREAM, target=CODER_30B, head={"aux_layers": (3, 23, 43)})


def test_what_is_named_beside_eagle_config(says: Says) -> None:
    glm = model_facts(GLM_4_7_FP8, 1)
    silent(OWN, on=UPSTREAM, target=glm, head={"aux_layers_beside": (2, 46, 89)})  # what the release takes by itself
    silent(OWN, on=UPSTREAM, target=glm, head={"aux_layers_beside": (1, 45, 88)})  # the same, as outputs
    says(noted(OWN, on=UPSTREAM, target=glm, head={"aux_layers_beside": (3, 46, 91)}).problem)


def test_0_4_5_reads_no_names(says: Says) -> None:
    llama: dict[str, Any] = {"architectures": ("LlamaForCausalLM",), "num_hidden_layers": 32, "attention_layers": ()}
    on = server(version="0.4.5")
    says(noted(OWN, on=on, target=llama, head={"aux_layers": (3, 16, 30)}).problem)
    silent(OWN, on=on, target=llama, head={"aux_layers": (1, 15, 28)})


def test_a_sliding_window_is_attention_and_gemma_gives_its_last() -> None:
    gemma, head = model_facts(GEMMA_4_31B, 1), model_facts(HEADS["thoughtworks/Gemma-4-31B-Eagle3"], 1)
    assert head.aux_layers == (2, 29, 56)
    for rule in (THERE, ATTEND, OWN):
        silent(rule, target=gemma, head=head)
    silent(THERE, target=gemma, head={"aux_layers": (2, 29, 59)})
