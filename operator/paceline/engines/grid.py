"""The trees of a search: those of a range that are worth a server start, as arms that the engine and its backend can
run.

A range of depths, branchings and widths has hundreds of trees, most of them similar. So branchings and widths are
powers of two; if that is still too many for one run, first depths and then the others get coarser.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from paceline.core import BASELINE, Adaptive, Arm, Range, Search, Server, Tree
from paceline.engines import ENGINES
from paceline.engines.refusal import Refusal

MOST_ARMS = 48
"""Maximum arms of a run, including the baseline."""
CHAIN_DEPTHS = (1, 2, 3, 5, 7)
"""First depths of a search over several loads: those of SGLang's own table (1, 3, 5, 7) and 2."""
ADAPTIVE = "adaptive"
"""The arm whose depth the engine chooses."""
POWERS = tuple(2**i for i in range(10))
COARSE = tuple(4**i for i in range(5))
COARSEST = tuple(8**i for i in range(3))
_DEPTHS = (tuple(range(1, 65)), (1, 2, 3, 4, 5, 7, 9, 12, 16, 24, 32, 48, 64), (1, 3, 5, 7, 15, 31, 63))
"""Depths, ever coarser. SGLang's own grid has 1, 3, 5 and 7 (scripts/playground/bench_speculative.py)."""
GRIDS = tuple(
    (depths, branchings, widths)
    for branchings, widths in ((POWERS, POWERS), (POWERS, COARSE), (COARSE, COARSE), (COARSEST, COARSE))
    for depths in _DEPTHS
)
"""Grids of depths of branching trees, branchings and widths: the search uses the first grid that is small enough."""


def searchable_arms(server: Server, search: Search, named: Iterable[Arm]) -> tuple[Arm, ...]:
    """The arms from which a search chooses, besides the baseline: the named candidates, the engine's adaptive mode if
    it has one for this head, and trees."""
    candidates = tuple(arm for arm in named if arm.name != BASELINE)
    taken = {arm.name for arm in candidates}
    own, _ = admitted(server, (adaptive for adaptive in _adaptive(server, search) if adaptive.name not in taken))
    room = MOST_ARMS - 1 - len(candidates) - len(own)
    shapes = {(arm.draft, arm.tree) for arm in candidates if not arm.args}
    for grid in GRIDS:
        arms = [arm for arm in _arms(server, search, grid) if (arm.draft, arm.tree) not in shapes]
        trees, _ = admitted(server, (arm for arm in arms if arm.name not in taken))
        if len(trees) <= room:
            break
    return (*candidates, *own, *trees[:room])


def _adaptive(server: Server, search: Search) -> Iterator[Arm]:
    if search.draft.algorithm in ENGINES[server.engine.type].capabilities.adaptive:
        yield Arm(name=ADAPTIVE, draft=search.draft, adaptive=Adaptive())


def _arms(server: Server, search: Search, grid: tuple[tuple[int, ...], ...]) -> Iterator[Arm]:
    """Each arm's name describes its shape."""
    engine = ENGINES[server.engine.type].capabilities
    for tree in _trees(search, *grid):
        if tree.num_steps >= engine.fewest_steps and (engine.trees or tree.top_k == 1):
            yield Arm(name=name_of(tree), draft=search.draft, tree=tree)


def name_of(tree: Tree) -> str:
    return f"tree-{tree.num_steps}-{tree.top_k}-{tree.num_draft_tokens}"


def _trees(
    search: Search, depths: tuple[int, ...], branchings: tuple[int, ...], widths: tuple[int, ...]
) -> Iterator[Tree]:
    """Chains and trees, each once. A tree has at least one token more than it has levels, or it would be a chain; if no
    power of two fits, it gets the maximum number of tokens."""
    for steps in _within(search.num_steps, depths):
        for top_k in _within(search.top_k, branchings):
            tree = Tree(num_steps=steps, top_k=top_k, num_draft_tokens=steps + 1)
            if top_k == 1:
                yield from (tree,) if tree in search else ()
                continue
            least, most = max(search.num_draft_tokens.min, steps + 2), min(search.num_draft_tokens.max, tree.widest)
            inner = [width for width in widths if least <= width <= most] or [most] * (least <= most)
            yield from (replace(tree, num_draft_tokens=width) for width in inner)


def _within(range: Range, values: tuple[int, ...]) -> list[int]:
    return sorted({*(value for value in values if value in range), range.min, range.max})


def _canonical(tree: Tree) -> Tree:
    """The tree as the engine serves it: SGLang sets a chain's draft tokens to its steps plus one, with only a warning
    in its log."""
    return replace(tree, num_draft_tokens=tree.num_steps + 1) if tree.top_k == 1 else tree


def useless(tree: Tree) -> str:
    """Why a tree is never worth a server start; "" if it may be worth one."""
    if tree.num_draft_tokens > max(tree.widest, tree.num_steps + 1):
        return f"has at most {tree.widest} draft tokens, not {tree.num_draft_tokens}"
    if tree.num_draft_tokens < tree.num_steps + 1:
        return (
            f"drafts {tree.num_steps} levels and verifies {tree.num_draft_tokens} tokens, the root included: "
            f"at most {tree.num_draft_tokens - 1} levels are ever seen"
        )
    return ""


def distinct(trees: Iterable[Tree]) -> tuple[tuple[int, ...], Mapping[int, str]]:
    """Indices of the trees worth a measurement; for the others, index → reason."""
    kept: dict[Tree, int] = {}
    left_out: dict[int, str] = {}
    for place, tree in enumerate(trees):
        served = _canonical(tree)
        if reason := useless(served):
            left_out[place] = reason
        elif served in kept:
            left_out[place] = f"is served like trees[{kept[served]}]"
        else:
            kept[served] = place
    return tuple(kept.values()), left_out


def admitted(server: Server, arms: Iterable[Arm]) -> tuple[tuple[Arm, ...], Mapping[str, str]]:
    """Arms that the engine's rules and backend admit; for the others, name → reason.

    Each arm is checked alone: in a search, one refused arm does not stop the others. Refusals of the shared arguments
    are in `shared_refusals`.
    """
    refusals, every = ENGINES[server.engine.type].refusals, tuple(arms)
    own = ((arm, refusal) for arm in reversed(every) for refusal in reversed(refusals(server, (arm,))) if refusal.arm)
    refused = {arm.name: refusal.message for arm, refusal in own}
    return tuple(arm for arm in every if arm.name not in refused), refused


def shared_refusals(server: Server, arms: Iterable[Arm]) -> tuple[Refusal, ...]:
    """Refusals of the shared arguments once any of these arms runs alone next to the baseline: the search may find any
    of them. They do not depend on a tree's numbers, so one arm of each kind is checked; each rule is reported once."""
    refusals = ENGINES[server.engine.type].refusals
    kinds = {(arm.draft, arm.tree is not None and arm.tree.top_k > 1, arm.tree is None, arm.args): arm for arm in arms}
    found = [refusal for arm in kinds.values() for refusal in refusals(server, (arm,)) if refusal.arm is None]
    return tuple({(refusal.rule, refusal.path): refusal for refusal in reversed(found)}.values())
