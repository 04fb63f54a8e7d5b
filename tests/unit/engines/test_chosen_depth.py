"""Arms whose depth the engine chooses, and algorithms that have no word here: what each engine is told of them, and
what it must then say of itself."""

import json
from typing import Any

import pytest
from tests.support.vllm_server import server as vllm_server
from tests.unit.engines.sglang.servers import server as sglang_server

from paceline.core import CUSTOM, Adaptive, Arm, Custom, Depth, Draft, Model
from paceline.engines import ENGINES
from paceline.evidence.arguments import comparable

SGLANG, VLLM = ENGINES["SGLang"], ENGINES["vLLM"]
HEAD = Model(source="hf://paceline-test/head", commit="3" * 40)
HEADS = f"/models/hub/models--paceline-test--head/snapshots/{'3' * 40}"
EAGLE3 = Draft(algorithm="EAGLE3", model=HEAD)


def falling(*depths: tuple[int, int]) -> tuple[Depth, ...]:
    return tuple(Depth(from_batch_size=size, num_steps=steps) for size, steps in depths)


def custom(name: str, *args: str, head: Model | None = None) -> Arm:
    return Arm(name="arm", draft=Draft(algorithm=CUSTOM, name=name, model=head), custom=Custom(args=args))


ADAPTIVE, SEVEN = Arm(name="arm", draft=EAGLE3, adaptive=Adaptive()), {"num_spec_tokens": 7, "draft_positions": 7}


@pytest.mark.parametrize(
    ("arm", "said", "expected"),
    [
        (ADAPTIVE,
         {"method": "eagle3", "model": HEADS, "num_speculative_tokens": 7, "enable_adaptive_verification": True},
         {"method": "eagle3", **SEVEN, "speculative_depth": "adaptive"}),
        (Arm(name="arm", draft=Draft(algorithm="DSPARK", model=HEAD), adaptive=Adaptive(num_steps=11)),
         {"method": "dspark", "model": HEADS, "num_speculative_tokens": 11, "enable_adaptive_verification": True},
         {"method": "dspark", "num_spec_tokens": 11, "draft_positions": 11, "speculative_depth": "adaptive"}),
        (Arm(name="arm", draft=EAGLE3, depth_by_batch_size=falling((1, 5), (17, 3), (65, 0))),
         {"method": "eagle3", "model": HEADS, "num_speculative_tokens": 5,
          "num_speculative_tokens_per_batch_size": [[1, 16, 5], [17, 64, 3], [65, 65, 0]]},
         {"method": "eagle3", "num_spec_tokens": 5, "draft_positions": 5, "speculative_depth": "schedule"}),
        (Arm(name="arm", draft=EAGLE3, depth_by_batch_size=falling((1, 1), (9, 4))),
         {"method": "eagle3", "model": HEADS, "num_speculative_tokens": 4,
          "num_speculative_tokens_per_batch_size": [[1, 8, 1], [9, 48, 4]]},
         {"method": "eagle3", "num_spec_tokens": 4, "draft_positions": 4, "speculative_depth": "schedule"}),
        (custom("ngram_gpu", "--speculative-config.num_speculative_tokens=16",
                "--speculative-config.suffix_decoding_max_spec_factor=2.0"),
         {"method": "ngram_gpu", "num_speculative_tokens": 16, "suffix_decoding_max_spec_factor": 2.0},
         {"method": "ngram_gpu", "num_spec_tokens": 16, "draft_positions": 16}),
        (custom("extract_hidden_states", "--speculative-config.num_speculative_tokens=1",
                "--speculative-config.model=plugin.Drafter",
                "--speculative-config.draft_load_config.load_format=dummy"),
         {"method": "extract_hidden_states", "num_speculative_tokens": 1, "model": "plugin.Drafter",
          "draft_load_config": {"load_format": "dummy"}},
         {"method": "extract_hidden_states", "num_spec_tokens": 1, "draft_positions": 1}),
    ],
)  # fmt: skip
def test_what_vllm_is_told(arm: Arm, said: dict[str, Any], expected: dict[str, Any]) -> None:
    """The last range of a schedule goes on beyond its end (`v1/spec_decode/dynamic/utils.py`)."""
    server = vllm_server()
    argv = VLLM.argv(server, arm)
    assert json.loads(argv[argv.index("--speculative-config") + 1]) == said
    about = {"served_model_name": "qwen3-coder-30b", "tensor_parallel_size": 1, "seed": 0}
    assert VLLM.expected(server, arm) == {**about, **expected}
    assert VLLM.refusals(server, (Arm(name="baseline"), arm)) == ()
    assert (arm.engine_chooses_depth, VLLM.draft_tokens(arm)) == (True, None)


@pytest.mark.parametrize(
    ("arm", "flags", "expected"),
    [
        (ADAPTIVE, ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", HEADS,
                    "--speculative-adaptive", "--speculative-eagle-topk", "1"],
         {"speculative_algorithm": "EAGLE3", "speculative_adaptive": True, "speculative_eagle_topk": 1}),
        (Arm(name="arm", draft=EAGLE3, depth_by_batch_size=falling((1, 5), (8, 1), (32, 0))),
         ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", HEADS,
          "--speculative-adaptive", "--speculative-eagle-topk", "1", "--speculative-num-steps", "5",
          "--speculative-adaptive-config", "/paceline/files/schedule-19863176ae.json"],
         {"speculative_algorithm": "EAGLE3", "speculative_adaptive": True, "speculative_eagle_topk": 1,
          "speculative_num_steps": 5, "speculative_num_draft_tokens": 6}),
        (custom("UNO", "--speculative-num-draft-tokens=4", "--uno-lora-path=/models/uno"),
         ["--speculative-algorithm", "UNO", "--speculative-num-draft-tokens=4", "--uno-lora-path=/models/uno"],
         {"speculative_algorithm": "UNO", "speculative_num_draft_tokens": 4, "uno_lora_path": "/models/uno"}),
        (custom("Eagle_Harness", "--speculative-algorithm-config", '{"size": 8}', "--speculative-plan-greedy",
                head=HEAD),
         ["--speculative-algorithm", "EAGLE_HARNESS", "--speculative-draft-model-path", HEADS,
          "--speculative-algorithm-config", '{"size": 8}', "--speculative-plan-greedy"],
         {"speculative_algorithm": "EAGLE_HARNESS", "speculative_plan_greedy": True}),
        (custom("FROZEN_KV_MTP", "--speculative-num-steps=3", "--speculative-token-map=/models/map.pt", head=HEAD),
         ["--speculative-algorithm", "FROZEN_KV_MTP", "--speculative-draft-model-path", HEADS,
          "--speculative-num-steps=3", "--speculative-token-map=/models/map.pt"],
         {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3}),
    ],
)  # fmt: skip
def test_what_sglang_is_told(arm: Arm, flags: list[str], expected: dict[str, Any]) -> None:
    """Registered names are in capitals. That a flag took effect is asked where its argument can be told: no text whose
    name looks like a secret, no structure. The probe reads FROZEN_KV_MTP as EAGLE, which SGLang makes it of."""
    server = sglang_server()
    argv = SGLANG.argv(server, arm)
    assert list(argv[argv.index("--speculative-algorithm") :]) == flags
    said = SGLANG.expected(server, arm)
    assert {key: value for key, value in said.items() if key.startswith(("speculative", "uno"))} == expected
    assert SGLANG.refusals(server, (Arm(name="baseline"), arm)) == ()
    assert (arm.engine_chooses_depth, SGLANG.draft_tokens(arm)) == (True, None)


def test_a_schedule_of_sglang_is_a_file_named_by_what_is_in_it() -> None:
    falls, other = falling((1, 5), (8, 1), (32, 0)), falling((1, 5), (8, 2), (32, 0))
    ((path, text),) = SGLANG.files(Arm(name="arm", draft=EAGLE3, depth_by_batch_size=falls)).items()
    assert json.loads(text) == {size: {"candidate_steps": [steps]} for size, steps in (("1", 5), ("8", 1), ("32", 0))}
    assert SGLANG.files(Arm(name="again", draft=EAGLE3, depth_by_batch_size=falls)) == {path: text}
    assert path not in SGLANG.files(Arm(name="arm", draft=EAGLE3, depth_by_batch_size=other))
    assert (SGLANG.files(ADAPTIVE), VLLM.files(Arm(name="arm", draft=EAGLE3, depth_by_batch_size=falls))) == ({}, {})


def test_no_rule_pretends_to_know_an_algorithm_that_has_no_word() -> None:
    """LoRA leaves some algorithms, and nobody knows whether this one."""
    server = sglang_server("--enable-lora", "--attn-dp-size=2")
    assert SGLANG.refusals(server, (Arm(name="baseline"), custom("UNO", "--uno-lora-path=/models/uno"))) == ()
    assert SGLANG.refusals(server, (Arm(name="baseline"), ADAPTIVE)) != ()


def test_what_uno_sets_besides_its_own_is_not_compared() -> None:
    """It would end each UNO in Error: 0.5.23, arg_groups/speculative_hook.py:584."""
    moved = SGLANG.moved((Arm(name="baseline"), custom("UNO", "--uno-lora-path=/models/uno")))
    arguments = {"uno_lora_path": "/models/uno", "lora_strict_loading": True, "enable_lora_overlap_loading": False}
    assert comparable(arguments, moved) == {}
    assert comparable({"lora_strict_loading": True}, SGLANG.moved(())) == {"lora_strict_loading": "true"}
