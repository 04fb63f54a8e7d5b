"""Rules on a target and the accelerators over which it is split."""

from collections.abc import Iterator, Sequence

from paceline.core import Arm, Server
from paceline.core.text import count
from paceline.engines import ENGINES
from paceline.engines.arguments import flag_value
from paceline.engines.model_rules import ModelFinding, ModelRule, PoolFacts, listed
from paceline.preflight.heads import ALGORITHM_OF

OF_EXPERTS = ("moe_intermediate_size", "experts' intermediate_size")
"""Sizes that expert parallelism does not split."""
TENSOR_PARALLEL = "accelerator.tensorParallelSize"


def named_heads(arms: Sequence[Arm]) -> set[str]:
    """Sources of the heads that rules check; what an unknown algorithm does with its head is unknown."""
    return {arm.draft.model.source for arm in arms if arm.draft and arm.draft.model and not arm.custom}


def argument(server: Server, flag: str) -> str | None:
    """The flag's value in the arguments of all arms; None without one, and if the engine has no such flag."""
    return flag_value(server.engine.args, flag) if flag else None


def facts_are_there(pool: PoolFacts) -> Iterator[ModelFinding]:
    if unknown := sorted(named_heads(pool.arms) - pool.heads.keys() - {pool.server.target.source}):
        problem = f"nothing is known of {listed(unknown)}"
        yield ModelFinding(path="pools", problem=problem, fix="name fewer heads in one deployment", blocks=False)
    for source, facts in ((pool.server.target.source, pool.target), *pool.heads.items()):
        if facts.architectures and facts.hidden_size is None:
            yield ModelFinding(
                path="pools",
                problem=f"config.json of {source} has no hidden_size where engines look for it: sizes, vocabularies, "
                "memory and attention heads were not compared",
                why="a rule cannot check what it does not know",
                fix="check that the engine serves this model",
                blocks=False,
            )


def heads_divide(pool: PoolFacts) -> Iterator[ModelFinding]:
    """Every GPU takes the same number of attention heads; key-value heads are split or repeated evenly."""
    groups = ENGINES[pool.server.engine.type].attention_groups(pool.server)
    size = pool.server.accelerator.tensor_parallel_size // groups or 1
    for whose, model in (("", pool.target), *((f" of {source}", head) for source, head in pool.heads.items())):
        heads, keys = model.num_attention_heads, model.num_key_value_heads
        if heads and heads % size:
            problem = f"{heads} attention heads{whose} on {size} GPUs"
        elif keys and keys % size and size % keys and model.kv_lora_rank is None:
            problem = f"{count(keys, 'key-value head')}{whose} on {size} GPUs"
        else:
            continue
        yield ModelFinding(path=TENSOR_PARALLEL, problem=problem, fix=f"set it to a divisor of {heads or keys}")


def blocks_divide(pool: PoolFacts) -> Iterator[ModelFinding]:
    """Each GPU gets whole blocks of an MLP's weights, if the checkpoint is quantised by block."""
    target, size = pool.target, pool.server.accelerator.tensor_parallel_size
    if not target.weight_block_size or size == 1:
        return
    flag = ENGINES[pool.server.engine.type].memory_flags.expert_parallel
    experts = argument(pool.server, flag) or "1"
    groups = int(experts) if experts.isdigit() else 1
    block = max(target.weight_block_size)

    def broken(ranks: int) -> list[str]:
        return [
            f"{name} {inner} / {over} = {inner / over:g}"
            for name, inner in target.split_sizes.items()
            if (inner % (over := max(1, ranks // groups) if name in OF_EXPERTS else ranks)) or (inner // over) % block
        ]

    if sizes := broken(size):
        works = max((ranks for ranks in range(1, size) if not size % ranks and not broken(ranks)), default=1)
        yield ModelFinding(
            path=TENSOR_PARALLEL,
            problem=f"{listed(sizes)}, which is not divisible by the {block} of the checkpoint's FP8 blocks",
            fix=f"set it to {works}, the largest that works, with as many GPUs; or serve a checkpoint without blocks",
        )


def code_is_trusted(pool: PoolFacts) -> Iterator[ModelFinding]:
    engine = pool.server.engine
    if engine.trust_remote_code:
        return
    hooked = ENGINES[engine.type].eagle3_targets(engine.version)
    models = {pool.server.target.source: pool.target, **pool.heads}
    for source, facts in models.items():
        if facts.custom_code:
            native = hooked is None or not set(facts.architectures).isdisjoint({*hooked, *ALGORITHM_OF})
            yield ModelFinding(
                path="engine.trustRemoteCode",
                problem=f"{source} has Python code, and trustRemoteCode is false",
                fix="after reading that code, set it to true if the engine does not know the model",
                blocks=not native,
            )


RULES: tuple[ModelRule[PoolFacts], ...] = (
    ModelRule(
        id="facts-are-there",
        why="the prefetch's message had no room for their facts, so these heads were not checked",
        check=facts_are_there,
    ),
    ModelRule(
        id="tensor-parallel-divides-heads",
        why="the engine splits the heads evenly over the GPUs and refuses to start otherwise",
        check=heads_divide,
    ),
    ModelRule(
        id="tensor-parallel-divides-blocks",
        why="a block of weights shares one scale and cannot be cut; the engine refuses to start "
        "(quantization/fp8.py:1588)",
        check=blocks_divide,
    ),
    ModelRule(
        id="code-is-trusted",
        why="the engine runs such code only on request, and Paceline fetches it only then; a class that the engine "
        "implements needs none",
        check=code_is_trusted,
    ),
)
