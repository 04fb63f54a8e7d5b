"""Whether it fits: the source documents' own numbers, and what a user would try."""

from dataclasses import replace

import pytest
from tests.support.messages import Says
from tests.unit.preflight.builders import HEAD, TARGET, TARGET_FACTS, candidate, server

from paceline.core import Arm, Server, Tree
from paceline.engines.model_rules import PoolFacts
from paceline.preflight import ModelFacts, ModelFinding, findings, model_facts
from paceline.preflight.accelerators import GIB, memory_of
from paceline.preflight.memory import estimate
from paceline_emulator.hub.published import GLM_4_7_FLASH, HEADS, LLAMA_3_1_8B, QWEN3_CODER_30B_A3B

GB = 10**9
CODER_30B = model_facts(QWEN3_CODER_30B_A3B, int(58.2 * GIB))
CODER_30B_HEAD = model_facts(HEADS["Qwen/Qwen3-Coder-30B-A3B-EAGLE3"], int(1.2 * GIB))
LLAMA_70B = model_facts(
    {**LLAMA_3_1_8B, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64}, 141_107_000_000
)
WIDEST = candidate(tree=Tree(num_steps=5, top_k=8, num_draft_tokens=32))


def findings_on(
    on: Server, target: ModelFacts, head: ModelFacts | None = None, arm: Arm = WIDEST
) -> list[ModelFinding]:
    facts = {TARGET: target} | ({HEAD: head} if head else {})
    arms = (Arm(name="baseline"), arm) if head else (Arm(name="baseline"),)
    return [finding for finding in findings(on, arms, facts) if finding.rule.startswith("memory")]


def seeds_000(*args: str) -> Server:
    """One H100 of 80 GB, 64 requests at a time, --mem-fraction-static 0.85, as the article starts it."""
    on = server("--mem-fraction-static=0.85", *args, tp=1, product="NVIDIA-H100-80GB-HBM3")
    return replace(on, max_concurrency=64)


def test_the_table_of_seeds_000_fits() -> None:
    """58.2 GB of weights, 1.2 GB of head, 17.6 GB of KV cache and buffers on 80 GB."""
    on = seeds_000("--max-total-tokens=65536")
    assert findings_on(on, CODER_30B, CODER_30B_HEAD) == []
    pool = PoolFacts(server=on, arms=(WIDEST,), target=CODER_30B, heads={HEAD: CODER_30B_HEAD})
    size = estimate(pool, WIDEST)
    assert size is not None
    assert size.weights / GIB == pytest.approx(58.2)
    assert size.head / GIB == pytest.approx(1.2)
    # 48 layers and one of the head, keys and values of 4 heads of 128 numbers of 2 bytes, 65536 tokens.
    assert size.cache == 65536 * 49 * 2 * 4 * 128 * 2
    assert size.cache + size.buffers < 17.6 * GIB


def test_a_cache_that_is_asked_for_and_has_no_room() -> None:
    (finding,) = findings_on(seeds_000("--max-total-tokens=262144"), CODER_30B, CODER_30B_HEAD)
    assert finding.blocks
    assert "--max-total-tokens" in finding.fix


def test_70b_on_one_card_of_80_gb_does_not_fit(says: Says) -> None:
    (finding,) = findings_on(seeds_000(), LLAMA_70B)
    assert finding.blocks
    assert finding.path == "accelerator.count"
    short = 141.107 + 64 * 2048 * 80 * 2 * 8 * 128 * 2 / GB - 0.85 * 80 * GIB / GB
    assert f" {short:.1f} GB " in finding.problem
    says(finding.problem, finding.fix)


def test_70b_on_four_of_them_fits() -> None:
    on = replace(server(tp=4, product="NVIDIA-H100-80GB-HBM3"), max_concurrency=64)
    assert findings_on(on, LLAMA_70B) == []


def test_quantised_while_loaded_it_takes_half() -> None:
    on = replace(server("--quantization=fp8", tp=1, product="NVIDIA-H200"), max_concurrency=8)
    assert findings_on(on, LLAMA_70B) == []
    assert findings_on(replace(on, engine=server().engine), LLAMA_70B) != []


def test_the_published_pair_fits_on_four_h200() -> None:
    assert findings_on(server(tp=4), TARGET_FACTS) == []


def test_tiny_weights_of_a_demo_are_no_trouble() -> None:
    assert findings_on(server(tp=4), replace(TARGET_FACTS, weight_bytes=4_000_000)) == []


def test_a_latent_cache_is_kept_whole_on_every_gpu() -> None:
    flash = model_facts(GLM_4_7_FLASH, 62 * GB)
    narrow, wide = (
        estimate(PoolFacts(server=server(tp=size), arms=(), target=flash, heads={}), Arm(name="baseline"))
        for size in (1, 4)
    )
    assert narrow
    assert wide
    assert narrow.cache == wide.cache == 32 * 2048 * 47 * (512 + 64) * 2
    assert narrow.weights == 4 * wide.weights


def test_an_accelerator_that_is_not_known_is_told_once_and_not_guessed() -> None:
    (finding,) = findings_on(server(product="NVIDIA-X1"), LLAMA_70B)
    assert (finding.path, finding.blocks) == ("accelerator.memory", False)
    on = server(product="NVIDIA-X1")
    declared = replace(on, accelerator=replace(on.accelerator, memory="192Gi"))
    assert findings_on(declared, LLAMA_70B) == []


@pytest.mark.parametrize(
    ("product", "declared", "gib"),
    [
        ("NVIDIA-H100-80GB-HBM3", None, 80),
        ("NVIDIA-A100-SXM4-40GB", None, 40),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", None, 10),
        ("NVIDIA-H200", None, 140),
        ("NVIDIA-L40S", None, 48),
        ("NVIDIA-GB10", None, 119),
        ("tpu-v6e-slice", None, 32),
        ("NVIDIA-H200", "70Gi", 70),
        ("anything", "107374182400", 100),
        ("anything", None, None),
    ],
)
def test_memory_by_label(product: str, declared: str | None, gib: int | None) -> None:
    assert memory_of(product, declared) == (gib and gib * GIB)
