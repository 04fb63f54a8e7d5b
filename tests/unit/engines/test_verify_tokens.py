"""How many tokens a verify step checks: ties, memory and the longest acceptance that is believed go by one number."""

from dataclasses import replace

import pytest
from tests.unit.engines.sglang.servers import server as sglang_server

from paceline.core import BASELINE, Adaptive, Arm, Custom, Depth, Draft, Ngram, Server, Tree
from paceline.engines import ENGINES, fewest_drafts_first

TREE = Tree(num_steps=3, top_k=4, num_draft_tokens=8)
CHAIN = Tree(num_steps=5, top_k=1, num_draft_tokens=6)


ALGORITHMS = {
    "chain": Arm(name="a", draft=Draft(algorithm="EAGLE3"), tree=CHAIN),
    "tree": Arm(name="a", draft=Draft(algorithm="EAGLE3"), tree=TREE),
    "DFLASH": Arm(name="a", draft=Draft(algorithm="DFLASH"), block_size=7),
    "DSPARK": Arm(name="a", draft=Draft(algorithm="DSPARK"), block_size=7),
    "NGRAM": Arm(name="a", draft=Draft(algorithm="NGRAM"), ngram=Ngram()),
    "NGRAM, match": Arm(name="a", draft=Draft(algorithm="NGRAM"), ngram=Ngram(max_match=8)),
    "NGRAM, tokens": Arm(name="a", draft=Draft(algorithm="NGRAM"), ngram=Ngram(num_draft_tokens=6, max_match=8)),
    "adaptive": Arm(name="a", draft=Draft(algorithm="EAGLE3"), adaptive=Adaptive()),
    "adaptive, steps": Arm(name="a", draft=Draft(algorithm="EAGLE3"), adaptive=Adaptive(num_steps=5)),
    "schedule": Arm(
        name="a",
        draft=Draft(algorithm="EAGLE3"),
        depth_by_batch_size=(Depth(from_batch_size=1, num_steps=4), Depth(from_batch_size=8, num_steps=1)),
    ),
    "custom": Arm(name="a", draft=Draft(algorithm="Custom", name="UNO"), custom=Custom()),
    "custom, tokens": Arm(
        name="a", draft=Draft(algorithm="Custom", name="UNO"), custom=Custom(args=("--speculative-num-draft-tokens=4",))
    ),
    "baseline": Arm(name=BASELINE),
}


@pytest.mark.parametrize(
    ("engine", "algorithm", "tokens", "draft_tokens"),
    [
        ("SGLang", "chain", 6, 5),
        ("SGLang", "tree", 8, 7),
        ("SGLang", "DFLASH", 7, 6),
        ("SGLang", "DSPARK", 8, 7),
        ("SGLang", "NGRAM", 12, 11),
        ("SGLang", "NGRAM, match", 8, 7),
        ("SGLang", "NGRAM, tokens", 6, 5),
        ("SGLang", "adaptive", 8, None),
        ("SGLang", "adaptive, steps", 8, None),
        ("SGLang", "schedule", 5, None),
        ("SGLang", "custom", 8, None),
        ("SGLang", "custom, tokens", 4, None),
        ("SGLang", "baseline", 1, None),
        ("SGLangJAX", "chain", 6, 5),
        ("SGLangJAX", "DFLASH", 7, 6),
        ("SGLangJAX", "baseline", 1, None),
        ("vLLM", "chain", 6, 5),
        ("vLLM", "DFLASH", 7, 6),
        ("vLLM", "DSPARK", 8, 7),
        ("vLLM", "NGRAM", 5, 4),
        ("vLLM", "NGRAM, tokens", 6, 5),
        ("vLLM", "adaptive", 8, None),
        ("vLLM", "adaptive, steps", 6, None),
        ("vLLM", "schedule", 5, None),
        ("vLLM", "baseline", 1, None),
    ],
)
def test_tokens_of_a_verify_step(engine: str, algorithm: str, tokens: int, draft_tokens: int | None) -> None:
    """DFLASH's block holds the root, DSPARK's comes after it; where the engine chooses, at the most."""
    arm = ALGORITHMS[algorithm]
    assert (ENGINES[engine].verify_tokens(arm), ENGINES[engine].draft_tokens(arm)) == (tokens, draft_tokens)


@pytest.mark.parametrize("algorithm", ["chain", "tree", "DFLASH", "DSPARK", "NGRAM", "NGRAM, match", "NGRAM, tokens"])
def test_sglang_is_held_to_the_same_number(algorithm: str) -> None:
    """What a round compares with the server's resolved arguments is what ties and memory go by."""
    arm, server = ALGORITHMS[algorithm], sglang_server()
    expected = ENGINES["SGLang"].expected(server, arm)["speculative_num_draft_tokens"]
    assert expected == ENGINES["SGLang"].verify_tokens(arm)


def on(engine: str) -> Server:
    server = sglang_server()
    return replace(server, engine=replace(server.engine, type=engine))


def test_ties_go_to_the_arm_with_fewer_draft_tokens_of_its_engine() -> None:
    """Where nothing is asked, NGRAM is 5 tokens on vLLM and 12 on SGLang; the chain is 6 on both."""
    arms = [replace(ALGORITHMS[name], name=name) for name in ("NGRAM", "chain", "baseline")]
    of = {engine: fewest_drafts_first(on(engine), arms) for engine in ("SGLang", "vLLM")}
    names = {engine: [arm.name for arm in found] for engine, found in of.items()}
    assert names == {"SGLang": ["baseline", "chain", "NGRAM"], "vLLM": ["baseline", "NGRAM", "chain"]}
