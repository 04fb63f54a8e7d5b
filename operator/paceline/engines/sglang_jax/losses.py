"""What requests no longer get once sglang-jax speculates (0.1.0rc0, below `sgl_jax/srt/`)."""

from paceline.core import Arm


def loses(arm: Arm) -> str:
    if arm.draft is None:
        return ""
    if arm.draft.algorithm == "DFLASH":
        return (
            "sglang-jax refuses a request with logprobs, a grammar, a penalty or any sampling but the greedy one under "
            "DFLASH (managers/scheduler.py:173)"
        )
    return (
        "sglang-jax ignores grammars (JSON schemas, regular expressions) and penalties of a request in silence once it "
        "speculates (speculative/overlap_utils.py:35)"
    )
