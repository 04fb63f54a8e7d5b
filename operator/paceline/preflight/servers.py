"""Rules on a target and the accelerators it is split over."""

from collections.abc import Iterator

from paceline.engines import ENGINES
from paceline.engines.arguments import flag_value
from paceline.preflight.cases import Pool, Rule, Said, listed, named_heads
from paceline.preflight.heads import ALGORITHM_OF

OF_EXPERTS = ("moe_intermediate_size", "experts' intermediate_size")
"""Sizes that expert parallelism does not split."""
TENSOR_PARALLEL = "accelerator.tensorParallelSize"


def facts_are_there(case: Pool) -> Iterator[Said]:
    if unknown := sorted(named_heads(case.arms) - case.heads.keys() - {case.server.target.source}):
        found = f"nothing is known of {listed(unknown)}"
        yield Said(path="pools", found=found, fix="name fewer heads in one deployment", blocks=False)


def heads_divide(case: Pool) -> Iterator[Said]:
    """Every GPU takes the same number of attention heads; key-value heads are split or repeated evenly."""
    size = case.server.accelerator.tensor_parallel_size
    for whose, model in (("", case.target), *((f" of {source}", head) for source, head in case.heads.items())):
        heads, keys = model.num_attention_heads, model.num_key_value_heads
        if heads and heads % size:
            found = f"{heads} attention heads{whose} on {size} GPUs"
        elif keys and keys % size and size % keys and model.kv_lora_rank is None:
            found = f"{keys} key-value heads{whose} on {size} GPUs"
        else:
            continue
        yield Said(path=TENSOR_PARALLEL, found=found, fix=f"set it to a divisor of {heads or keys}")


def blocks_divide(case: Pool) -> Iterator[Said]:
    """Of block-quantised checkpoints alone: what each GPU gets of an MLP must be whole blocks."""
    target, size = case.target, case.server.accelerator.tensor_parallel_size
    if not target.weight_block_size or size == 1:
        return
    experts = flag_value(case.server.engine.args, "--ep-size") or "1"
    groups = int(experts) if experts.isdigit() else 1
    block = max(target.weight_block_size)

    def broken(ranks: int) -> list[str]:
        return [
            f"{name} {inner} / {over} = {inner / over:g}"
            for name, inner in target.split_sizes.items()
            if (inner % (over := max(1, ranks // groups) if name in OF_EXPERTS else ranks)) or (inner // over) % block
        ]

    if found := broken(size):
        works = max((ranks for ranks in range(1, size) if not size % ranks and not broken(ranks)), default=1)
        yield Said(
            path=TENSOR_PARALLEL,
            found=f"{listed(found)}, which is not divisible by the {block} of the checkpoint's FP8 blocks",
            fix=f"set it to {works}, the largest that works, with as many GPUs; or serve a checkpoint without blocks",
        )


def code_is_trusted(case: Pool) -> Iterator[Said]:
    engine = case.server.engine
    if engine.trust_remote_code:
        return
    adapter = ENGINES.get(engine.name)
    known = adapter.eagle3_targets(engine.version) if adapter else None
    named = {case.server.target.source: case.target, **case.heads}
    for source, facts in named.items():
        if facts.custom_code:
            native = known is None or not set(facts.architectures).isdisjoint({*known, *ALGORITHM_OF})
            yield Said(
                path="engine.trustRemoteCode",
                found=f"{source} brings Python code of its own, and trustRemoteCode is false",
                fix="set it to true where the engine does not know the model, after reading that code",
                blocks=not native,
            )


RULES: tuple[Rule[Pool], ...] = (
    Rule(
        id="facts-are-there",
        why="what the prefetch found did not fit into its message, so these heads were not checked",
        check=facts_are_there,
    ),
    Rule(
        id="tensor-parallel-divides-heads",
        why="the engine splits the heads evenly over the GPUs and refuses to start otherwise",
        check=heads_divide,
    ),
    Rule(
        id="tensor-parallel-divides-blocks",
        why="a block of weights shares one scale and cannot be cut; the engine refuses to start "
        "(quantization/fp8.py:1588)",
        check=blocks_divide,
    ),
    Rule(
        id="code-is-trusted",
        why="the engine does not run it unasked and Paceline does not fetch it; a class that the engine has itself "
        "needs none",
        check=code_is_trusted,
    ),
)
