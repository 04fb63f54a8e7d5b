"""Servers, candidates and facts of published models, to be bent."""

from dataclasses import replace
from typing import Any

from paceline.core import Accelerator, Arm, Cache, Draft, Engine, Model, ModelFacts, Server, Tree
from paceline.preflight import ModelFinding, findings, model_facts
from paceline_emulator.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_EAGLE3

TARGET, HEAD = "hf://Qwen/Qwen3-Coder-Next", "hf://thoughtworks/Qwen3-Coder-Next-Eagle3"
TARGET_FACTS = model_facts(QWEN3_CODER_NEXT, 159_000_000_000, {"model.norm.weight"})
HEAD_FACTS = replace(model_facts(QWEN3_CODER_NEXT_EAGLE3, 278_000_000), has_d2t=True)
WIDE, NARROW = Tree(num_steps=3, top_k=4, num_draft_tokens=8), Tree(num_steps=5, top_k=1, num_draft_tokens=6)


def server(*args: str, tp: int = 4, product: str = "NVIDIA-H200", **engine: Any) -> Server:
    return Server(
        engine=Engine(**{"type": "SGLang", "version": "0.5.23", "image": "sglang", "args": args, **engine}),
        target=Model(source=TARGET),
        served_name="qwen3-coder-next",
        accelerator=Accelerator(product=product, count=tp, tensor_parallel_size=tp),
        cache=Cache(claim="models"),
        max_concurrency=32,
    )


def candidate(algorithm: str = "EAGLE3", source: str | None = HEAD, tree: Tree | None = NARROW, **shape: Any) -> Arm:
    model = Model(source=source) if source else None
    return Arm(name="narrow", draft=Draft(algorithm=algorithm, model=model), tree=tree, **shape)


def refused(rule: str, **situation: Any) -> ModelFinding:
    """The finding of this rule, which blocks."""
    finding = finding_of(rule, **situation)
    assert finding is not None, f"{rule} finds nothing"
    assert finding.blocks, finding
    return finding


def noted(rule: str, **situation: Any) -> ModelFinding:
    """The finding of this rule, which does not block."""
    finding = finding_of(rule, **situation)
    assert finding is not None, f"{rule} finds nothing"
    assert not finding.blocks, finding
    return finding


def silent(rule: str, **situation: Any) -> None:
    """This rule has no finding."""
    assert finding_of(rule, **situation) is None


def finding_of(
    rule: str,
    *,
    on: Server | None = None,
    arm: Arm | None = None,
    target: ModelFacts | dict[str, Any] | None = None,
    head: ModelFacts | dict[str, Any] | None = None,
) -> ModelFinding | None:
    """The finding of this rule, if any; dicts change the facts of the published pair."""
    facts = {
        TARGET: target if isinstance(target, ModelFacts) else replace(TARGET_FACTS, **(target or {})),
        HEAD: head if isinstance(head, ModelFacts) else replace(HEAD_FACTS, **(head or {})),
    }
    arms = (Arm(name="baseline"), arm or candidate())
    mine = [finding for finding in findings(on or server(), arms, facts) if finding.rule == rule]
    assert len(mine) <= 1
    return mine[0] if mine else None
