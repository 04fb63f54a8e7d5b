"""Static rules: what needs no measurement. Canonicalise, leave out what is served alike or cannot run.

Of the 48 points of SGLang's own grid, 44 differ and 29 verify all that they draft.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from paceline.core import Arm, Server, Tree
from paceline.engines import ENGINES


def canonical(tree: Tree) -> Tree:
    """As the engine serves it: SGLang turns the draft tokens of a chain into its steps and one, with no more than a
    warning in its log."""
    return replace(tree, num_draft_tokens=tree.num_steps + 1) if tree.top_k == 1 else tree


def useless(tree: Tree) -> str:
    """Why a tree is never worth a server start; "" if it may be."""
    if tree.num_draft_tokens > max(tree.widest, tree.num_steps + 1):
        return f"has at most {tree.widest} draft tokens, not {tree.num_draft_tokens}"
    if tree.num_draft_tokens < tree.num_steps + 1:
        return (
            f"drafts {tree.num_steps} levels and verifies {tree.num_draft_tokens} tokens, the root included: "
            f"at most {tree.num_draft_tokens - 1} levels are ever seen"
        )
    return ""


def distinct(trees: Iterable[Tree]) -> tuple[tuple[int, ...], Mapping[int, str]]:
    """Places of the trees that are worth a measurement, and of the others → why not."""
    kept: dict[Tree, int] = {}
    left_out: dict[int, str] = {}
    for place, tree in enumerate(trees):
        served = canonical(tree)
        if reason := useless(served):
            left_out[place] = reason
        elif served in kept:
            left_out[place] = f"is served as trees[{kept[served]}] is"
        else:
            kept[served] = place
    return tuple(kept.values()), left_out


def admitted(server: Server, arms: Iterable[Arm]) -> tuple[tuple[Arm, ...], Mapping[str, str]]:
    """Arms that the engine and its backend can run, by the engine's own rules, and of the others: name → why not.

    Each is judged by itself: in a search one that is refused does not stop the others.
    """
    refusals, every = ENGINES[server.engine.name].refusals, tuple(arms)
    refused = {arm.name: refusal.message for arm in every for refusal in refusals(server, (arm,))[:1]}
    return tuple(arm for arm in every if arm.name not in refused), refused
