"""How many draft tokens a verify call checks: an acceptance length beyond that and one more is not believed."""

import pytest

from paceline.core import Adaptive, Arm, Draft, Ngram, Tree
from paceline.engines import ENGINES

TREE = Tree(num_steps=3, top_k=4, num_draft_tokens=8)
CHAIN = Tree(num_steps=5, top_k=1, num_draft_tokens=6)


@pytest.mark.parametrize(
    ("engine", "arm", "drafts"),
    [
        ("SGLang", Arm(name="a", draft=Draft(algorithm="EAGLE3"), tree=TREE), 7),
        ("SGLang", Arm(name="a", draft=Draft(algorithm="DFLASH"), block_size=16), 15),
        ("SGLang", Arm(name="a", draft=Draft(algorithm="DSPARK"), block_size=4), 4),
        ("SGLang", Arm(name="a", draft=Draft(algorithm="NGRAM"), ngram=Ngram(num_draft_tokens=8)), 7),
        ("SGLang", Arm(name="a", draft=Draft(algorithm="NGRAM"), ngram=Ngram(max_match=18)), 17),
        ("SGLang", Arm(name="a", draft=Draft(algorithm="EAGLE3"), adaptive=Adaptive(num_steps=5)), None),
        ("SGLangJAX", Arm(name="a", draft=Draft(algorithm="EAGLE3"), tree=CHAIN), 5),
        ("SGLangJAX", Arm(name="a", draft=Draft(algorithm="DFLASH"), block_size=16), 15),
        ("VLLM", Arm(name="a", draft=Draft(algorithm="EAGLE3"), tree=CHAIN), 5),
        ("VLLM", Arm(name="a", draft=Draft(algorithm="DFLASH"), block_size=16), 15),
        ("VLLM", Arm(name="a", draft=Draft(algorithm="DSPARK"), block_size=4), 4),
        ("VLLM", Arm(name="a", draft=Draft(algorithm="NGRAM"), ngram=Ngram(num_draft_tokens=8)), 7),
        *((engine, Arm(name="baseline"), None) for engine in ENGINES),
    ],
)  # fmt: skip
def test_drafts_of_a_verify_call(engine: str, arm: Arm, drafts: int | None) -> None:
    """DFLASH's block holds the root, DSPARK's comes after it; of an adaptive arm they change while it serves."""
    assert ENGINES[engine].drafts(arm) == drafts
