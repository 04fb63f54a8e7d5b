"""Rules about what is speculated with: what the version has, and what a tree, an n-gram or a depth can be."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Arm
from paceline.engines.adapter import Refusal
from paceline.engines.release import release
from paceline.engines.sglang import moves
from paceline.engines.sglang.argv import draft_tokens
from paceline.engines.sglang.case import NGRAM_BREADTH, Candidate, Case, Rule
from paceline.engines.sglang.versions import KNOWN, is_newer, is_older, neighbours

ADAPTIVE_STEPS = (0, 1, 3, 5, 7)
"""Depths of 0.5.23's own adaptive configuration."""
BACKENDS_PINNED_BY = (("--attention-backend",), ("--prefill-attention-backend", "--decode-attention-backend"))
"""Either of these leaves SGLang no choice of attention backend."""
BACKEND_FLAGS = tuple(dict.fromkeys(flag for flags in BACKENDS_PINNED_BY for flag in flags))
CHAINS_ONLY = {
    "trtllm_mha": "speculative_hook.py:1176",
    "flashmla": "flashmla_backend.py:608",
    "trtllm_mla": "trtllm_mla_backend.py:1768",
    "cutlass_mla": "trtllm_mla_backend.py:1768",
    "aiter": "aiter_backend.py:1396",
}
"""Attention backends that cannot draft a tree, and where they say so."""


def _version(case: Case) -> Iterator[Refusal]:
    engine = case.server.engine
    if release(engine.version) is None:
        message = f"{engine.version} is no version; write the one that the image speaks, such as {KNOWN[-1].version}"
        yield Refusal(path="engine.version", message=message)
    elif is_older(engine.version):
        message = f"{case.engine} is older than {KNOWN[0].version}, the oldest that is known; take a newer image"
        yield Refusal(path="engine.version", message=message)


def _algorithm(case: Case) -> Iterator[Refusal]:
    if is_newer(case.version):
        return
    read = moves.of(case.version)
    lacks = read.lacks if read else frozenset[str]()
    has = frozenset[str]().union(*(row.algorithms for row in neighbours(case.version))) - lacks
    for one in case.candidates:
        if one.algorithm not in has:
            known = any(one.algorithm in row.algorithms for row in KNOWN)
            first = moves.first_with(one.algorithm) if known else None
            way_out = f"{first} has it" if first else f"it has {', '.join(sorted(has))}"
            yield one.refused("draft.algorithm", f"{case.engine} has no {one.algorithm}; {way_out}")


def _adaptive(case: Case) -> Iterator[Refusal]:
    read = moves.of(case.version)
    lacks = read is not None and moves.ADAPTIVE in read.lacks
    if is_newer(case.version) or (any(row.adaptive for row in neighbours(case.version)) and not lacks):
        return
    first = moves.first_with(moves.ADAPTIVE)
    for one in case.candidates:
        if one.arm.adaptive:
            yield one.refused("adaptive", f"{case.engine} has no adaptive speculation; {first} has it, or name a tree")


def _adaptive_steps(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        steps = one.arm.adaptive.num_steps if one.arm.adaptive else None
        if steps is None or steps in ADAPTIVE_STEPS or one.value("--speculative-adaptive-config"):
            continue
        choices = ", ".join(map(str, ADAPTIVE_STEPS[1:]))
        yield one.refused("adaptive.numSteps", f"{steps} is no depth of the adaptive configuration; take {choices}")


def _ngram(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        for field, value in _fields(one.arm).items():
            if value is not None and one.algorithm == "NGRAM" and field not in case.speaks.ngram:
                name = {"min_match": "minMatch", "max_match": "maxMatch"}[field]
                yield one.refused(
                    f"ngram.{name}",
                    f"{case.engine} has no match window: it looks for every suffix of the text; remove {name}"
                    " (the longest is --speculative-ngram-max-trie-depth in the candidate's args)",
                )


def _backend_moves(case: Case) -> Iterator[Refusal]:
    pasted = {one.name for one in case.shared}
    if any(pasted.issuperset(flags) for flags in BACKENDS_PINNED_BY):
        return
    for one in case.candidates:
        if one.branching > 1:
            backends = case.speaks.paged_trees or ("triton", "flashinfer", "fa3")
            yield Refusal(
                path="engine.args",
                message=f"candidate {one.arm.name} has {_branching(one)}: SGLang would change the attention backend "
                f"behind it; add --attention-backend={_or(backends)}",
            )


def _backend_branches(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        for flag in BACKEND_FLAGS:
            if one.branching > 1 and (backend := one.value(flag)) in CHAINS_ONLY:
                backends = case.speaks.paged_trees or ("triton", "flashinfer", "fa3")
                yield one.refused(
                    one.branches_at,
                    f"{_branching(one)} cannot be drafted on {backend}: write 1 (a chain) or {flag}={_or(backends)}",
                )


def _pages(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        able = ("flashinfer",) if one.algorithm == "NGRAM" else case.speaks.paged_trees
        if one.branching == 1 or (page := one.number("--page-size")) <= 1:
            continue
        decoding = one.value("--decode-attention-backend") or one.value("--attention-backend")
        if decoding not in able:
            instead = f", or --attention-backend={_or(able)}" if able else ""
            yield one.refused(
                one.branches_at,
                f"{_branching(one)} with --page-size={page} is not verified on {decoding or 'any backend'} by "
                f"{case.engine}: write 1 (a chain), or --page-size=1{instead}",
            )


def _draft_backend(case: Case) -> Iterator[Refusal]:
    choices = case.flags["--attention-backend"].choices
    for one in case.candidates:
        found = one.written.get("--speculative-draft-attention-backend")
        if found and not is_newer(case.version) and found.value not in choices:
            yield found.refused(f"{found.given.name} has no choice {found.value}; take one of --attention-backend's")


def _rejection(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        for flag in ("--speculative-use-rejection-sampling", "--speculative-use-block-verification"):
            if found := one.written.get(flag):
                also = ("DFLASH", "DSPARK") if flag.endswith("verification") else ()
                if one.runs_as not in ("EAGLE", "EAGLE3", *also):
                    yield found.refused(f"{flag} is not for {one.algorithm}; remove it")
                elif one.branching > 1:
                    yield found.refused(f"{flag} verifies chains only, and {_branching(one)}; remove it, or write 1")


def _same(case: Case) -> Iterator[Refusal]:
    seen: dict[tuple[object, ...], str] = {}
    for one in case.candidates:
        meant = _canonical(one)
        if first := seen.get(meant):
            yield one.refused("name", f"{one.arm.name} and {first} are served alike; keep one")
        seen.setdefault(meant, one.arm.name)


RULES = (
    Rule(
        id="engine-version",
        broken=_version,
        reason="which flags and pages there are depends on it",
        source="the wheels of 0.4.5, 0.5.6 and 0.5.23",
    ),
    Rule(
        id="algorithm-version",
        broken=_algorithm,
        reason="the server ends with an unknown algorithm, or serves without speculation",
        source="speculative/spec_info.py of each wheel",
    ),
    Rule(
        id="adaptive-version",
        broken=_adaptive,
        reason="the server exits 2: unrecognized arguments",
        source="the flag lists",
    ),
    Rule(
        id="adaptive-steps",
        broken=_adaptive_steps,
        reason="ValueError at the start: not in the adaptive config candidate_steps",
        source="adaptive_spec_params.py:28, tried",
    ),
    Rule(
        id="ngram-window",
        broken=_ngram,
        reason="the server exits 2: unrecognized arguments",
        source="the flag lists; trie.cpp:129",
    ),
    Rule(
        id="tree-backend-moves",
        broken=_backend_moves,
        reason="the default backend depends on topk, so the arms would differ in more than the tree",
        source="model_override_base.py:277, tried",
    ),
    Rule(
        id="tree-backend",
        broken=_backend_branches,
        reason="ValueError or NotImplementedError, most of them only after the weights are loaded",
        source="; ".join(f"{backend}: {where}" for backend, where in CHAINS_ONLY.items()),
    ),
    Rule(
        id="tree-pages",
        broken=_pages,
        reason="ValueError at the start; 0.4.5 turns the tree into a chain and only logs it",
        source="speculative_hook.py:1271, tried, and :1358 (n-grams); server_args.py:1753 of 0.5.6, :353 of 0.4.5",
    ),
    Rule(
        id="draft-backend",
        broken=_draft_backend,
        reason="the arguments do not tell, and the server ends after the weights are loaded",
        source="draft_utils.py:64, tried",
    ),
    Rule(
        id="rejection-sampling",
        broken=_rejection,
        reason="ValueError or NotImplementedError at the start",
        source="speculative_hook.py:175 and :1210, tried",
    ),
    Rule(
        id="candidates-same",
        broken=_same,
        reason="GPU time for measuring one thing twice, and a verdict between equals is chance",
        source="ours",
    ),
)


def _fields(arm: Arm) -> Mapping[str, Any]:
    if not (ngram := arm.ngram):
        return {}
    return {"min_match": ngram.min_match, "max_match": ngram.max_match}


def _branching(one: Candidate) -> str:
    return f"{'breadth' if one.algorithm == 'NGRAM' else 'topK'} {one.branching}"


def _canonical(one: Candidate) -> tuple[object, ...]:
    """What of a candidate reaches the server, with what SGLang fills in."""
    arm, ngram = one.arm, one.arm.ngram
    assert arm.draft
    filled = (draft_tokens(arm), ngram.breadth or NGRAM_BREADTH, ngram.min_match, ngram.max_match) if ngram else None
    args = frozenset((written.name, written.given.values) for written in one.case.own(arm))
    adaptive = (arm.adaptive.num_steps or 3) if arm.adaptive else None
    return one.runs_as, arm.draft.model, arm.tree, arm.block_size, filled, adaptive, args


def _or(names: tuple[str, ...]) -> str:
    return " (or ".join([names[0], ", ".join(names[1:])]) + ")" if len(names) > 1 else names[0]
