"""Rules about algorithms, trees, n-grams and depths, by SGLang version."""

from collections.abc import Iterator, Mapping

from paceline.core import Arm
from paceline.engines.refusal import Refusal
from paceline.engines.release import release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang import backends, moved_arguments
from paceline.engines.sglang.argv import verify_tokens
from paceline.engines.sglang.candidate import NGRAM_BREADTH, Candidate, candidates
from paceline.engines.sglang.flags_by_release import ngram
from paceline.engines.sglang.versions import KNOWN, is_newer, is_older, known_release, neighbouring_releases

ADAPTIVE_STEPS = (0, 1, 3, 5, 7)
"""Depths of 0.5.23's own adaptive configuration."""
REJECTION = {
    "--speculative-use-rejection-sampling": ("EAGLE", "EAGLE3"),
    "--speculative-use-block-verification": ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"),
}
"""Flag → the algorithms that support it."""


def _version(configuration: Configuration) -> Iterator[Refusal]:
    version = configuration.version
    if release(version) is None:
        message = f"{version} is not a version; write the image's version, such as {KNOWN[-1].version}"
        yield Refusal(path="engine.version", message=message)
    elif is_older(version):
        message = (
            f"{configuration.engine} is older than {KNOWN[0].version}, the oldest known version; take a newer image"
        )
        yield Refusal(path="engine.version", message=message)


def _algorithm(configuration: Configuration) -> Iterator[Refusal]:
    if is_newer(configuration.version):
        return
    changes = moved_arguments.moves_of(configuration.version)
    lacks = changes.lacks if changes else frozenset[str]()
    algorithms = (
        frozenset[str]().union(*(row.algorithms for row in neighbouring_releases(configuration.version))) - lacks
    )
    for candidate in candidates(configuration):
        if candidate.algorithm not in algorithms:
            known = any(candidate.algorithm in row.algorithms for row in KNOWN)
            first = moved_arguments.first_with(candidate.algorithm) if known else None
            way_out = f"{first} has it" if first else f"it has {', '.join(sorted(algorithms))}"
            message = f"{configuration.engine} has no {candidate.algorithm}; {way_out}"
            yield candidate.refused("draft.algorithm", message)


def _adaptive(configuration: Configuration) -> Iterator[Refusal]:
    version = configuration.version
    changes = moved_arguments.moves_of(version)
    lacks = changes is not None and moved_arguments.ADAPTIVE in changes.lacks
    if is_newer(version) or (any(row.adaptive for row in neighbouring_releases(version)) and not lacks):
        return
    first = moved_arguments.first_with(moved_arguments.ADAPTIVE)
    message = f"{configuration.engine} has no adaptive speculation; take {first}, or name a tree"
    for candidate in candidates(configuration):
        if candidate.arm.adaptive:
            yield candidate.refused("adaptive", message)


def _adaptive_steps(configuration: Configuration) -> Iterator[Refusal]:
    choices = ", ".join(map(str, ADAPTIVE_STEPS[1:]))
    for candidate in candidates(configuration):
        steps = candidate.arm.adaptive.num_steps if candidate.arm.adaptive else None
        if steps is None or steps in ADAPTIVE_STEPS or candidate.value("--speculative-adaptive-config"):
            continue
        message = f"{steps} is not a depth of the adaptive configuration; take {choices}"
        yield candidate.refused("adaptive.numSteps", message)


def _ngram(configuration: Configuration) -> Iterator[Refusal]:
    rendered = ngram(configuration.version)
    for candidate in candidates(configuration):
        for name, (field, value) in _window(candidate.arm).items():
            if value is not None and candidate.algorithm == "NGRAM" and field not in rendered:
                yield candidate.refused(
                    f"ngram.{name}",
                    f"{configuration.engine} has no match window: it looks for every suffix of the text; remove {name}"
                    " (the longest is --speculative-ngram-max-trie-depth in the candidate's args)",
                )


def _backend_moves(configuration: Configuration) -> Iterator[Refusal]:
    given = {parsed.name for parsed in configuration.shared}
    if any(given.issuperset(flags) for flags in backends.PINNED_BY):
        return
    for candidate in candidates(configuration):
        if candidate.branching > 1:
            yield Refusal(
                path="engine.args",
                message=f"candidate {candidate.arm.name} has {candidate.branching_text}: SGLang would change "
                "the attention backend for it; add "
                f"--attention-backend={_or(_tree_backends(configuration))}",
            )


def _backend_branches(configuration: Configuration) -> Iterator[Refusal]:
    able = _or(_tree_backends(configuration))
    for candidate in candidates(configuration):
        for flag in backends.in_force(candidate.flags):
            if candidate.branching > 1 and backends.chains_only(backend := candidate.value(flag)):
                yield candidate.refused(
                    candidate.branching_field,
                    f"{candidate.branching_text} cannot be drafted on {backend}: write 1 (a chain) or {flag}={able}",
                )


def _pages(configuration: Configuration) -> Iterator[Refusal]:
    paged_trees = known_release(configuration.version).paged_trees
    for candidate in candidates(configuration):
        able = ("flashinfer",) if candidate.algorithm == "NGRAM" else paged_trees
        if candidate.branching == 1 or (page := candidate.number("--page-size")) <= 1:
            continue
        decoding = candidate.value("--decode-attention-backend") or candidate.value("--attention-backend")
        if decoding not in able:
            instead = f", or --attention-backend={_or(able)}" if able else ""
            yield candidate.refused(
                candidate.branching_field,
                f"{candidate.branching_text} with --page-size={page} is not verified on {decoding or 'any backend'} by "
                f"{configuration.engine}: write 1 (a chain), or --page-size=1{instead}",
            )


def _draft_backend(configuration: Configuration) -> Iterator[Refusal]:
    choices = configuration.flags.flags["--attention-backend"].choices
    for candidate in candidates(configuration):
        parsed = candidate.flags.get("--speculative-draft-attention-backend")
        if parsed and not is_newer(configuration.version) and parsed.value not in choices:
            yield parsed.refused(f"{parsed.written} cannot be {parsed.value}; take a value of --attention-backend")


def _rejection(configuration: Configuration) -> Iterator[Refusal]:
    for candidate in candidates(configuration):
        for flag, algorithms in REJECTION.items():
            parsed = candidate.flags.get(flag)
            if parsed and candidate.runs_as not in algorithms:
                yield parsed.refused(f"{flag} is not for {candidate.algorithm}; remove it")
            elif parsed and candidate.branching > 1:
                message = f"{flag} verifies chains only, but {candidate.branching_text}; remove it, or write 1"
                yield parsed.refused(message)


def _same(configuration: Configuration) -> Iterator[Refusal]:
    names: dict[tuple[object, ...], str] = {}
    for candidate in candidates(configuration):
        rendering = _rendering(candidate)
        if first := names.get(rendering):
            yield candidate.refused("name", f"{candidate.arm.name} and {first} are served alike; keep one")
        names.setdefault(rendering, candidate.arm.name)


RULES = (
    EngineRule(
        id="engine-version",
        check=_version,
        reason="flags and pages depend on it",
        source="the wheels of 0.4.5, 0.5.6 and 0.5.23",
    ),
    EngineRule(
        id="algorithm-version",
        check=_algorithm,
        reason="the server exits on an unknown algorithm, or serves without speculation",
        source="speculative/spec_info.py of each wheel",
    ),
    EngineRule(
        id="adaptive-version",
        check=_adaptive,
        reason="the server exits 2: unrecognized arguments",
        source="the flag lists",
    ),
    EngineRule(
        id="adaptive-steps",
        check=_adaptive_steps,
        reason="ValueError at the start: not in the adaptive config candidate_steps",
        source="adaptive_spec_params.py:28, tried",
    ),
    EngineRule(
        id="ngram-window",
        check=_ngram,
        reason="the server exits 2: unrecognized arguments",
        source="the flag lists; trie.cpp:129",
    ),
    EngineRule(
        id="tree-backend-moves",
        check=_backend_moves,
        reason="the default backend depends on topk, so the arms would differ in more than the tree",
        source="model_override_base.py:277, tried",
    ),
    EngineRule(
        id="tree-backend",
        check=_backend_branches,
        reason="ValueError or NotImplementedError, most only after the weights are loaded",
        source="; ".join(
            f"{name}: {row.source}" for name, row in backends.BACKENDS.items() if backends.chains_only(name)
        ),
    ),
    EngineRule(
        id="tree-pages",
        check=_pages,
        reason="ValueError at the start; 0.4.5 turns the tree into a chain and only logs it",
        source="speculative_hook.py:1271, tried, and :1358 (n-grams); server_args.py:1753 of 0.5.6, :353 of 0.4.5",
    ),
    EngineRule(
        id="draft-backend",
        check=_draft_backend,
        reason="the arguments do not show it, and the server exits after the weights are loaded",
        source="draft_utils.py:64, tried",
    ),
    EngineRule(
        id="rejection-sampling",
        check=_rejection,
        reason="ValueError or NotImplementedError at the start",
        source="speculative_hook.py:175 and :1210, tried",
    ),
    EngineRule(
        id="candidates-same",
        check=_same,
        reason="it costs GPU time to measure one thing twice, and a verdict between equals is chance",
        source="ours",
    ),
)


def _window(arm: Arm) -> Mapping[str, tuple[str, int | None]]:
    """Field of the resource → field of an n-gram drafter, and its value."""
    ngram = arm.ngram
    return {"minMatch": ("min_match", ngram.min_match), "maxMatch": ("max_match", ngram.max_match)} if ngram else {}


def _tree_backends(configuration: Configuration) -> tuple[str, ...]:
    return known_release(configuration.version).paged_trees or ("triton", "flashinfer", "fa3")


def _rendering(candidate: Candidate) -> tuple[object, ...]:
    """The parts of a candidate that reach the server, with SGLang's defaults filled in."""
    arm, ngram = candidate.arm, candidate.arm.ngram
    assert arm.draft
    filled = (verify_tokens(arm), ngram.breadth or NGRAM_BREADTH, ngram.min_match, ngram.max_match) if ngram else None
    args = frozenset((parsed.name, parsed.values) for parsed in candidate.configuration.own(arm))
    adaptive = (arm.adaptive.num_steps or 3) if arm.adaptive else None
    return candidate.runs_as, arm.draft.model, arm.tree, arm.block_size, filled, adaptive, arm.depth_by_batch_size, args


def _or(names: tuple[str, ...]) -> str:
    return " (or ".join([names[0], ", ".join(names[1:])]) + ")" if len(names) > 1 else names[0]
