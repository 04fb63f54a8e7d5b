"""Rules about a draft's worker, and about its token table."""

from collections.abc import Iterator

from paceline.engines.refusal import Refusal
from paceline.engines.release import release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.candidate import YES, Candidate, candidates, variable
from paceline.engines.sglang.variables import OVERLAPPING

SINCE, UNTIL = (0, 5, 6), (0, 5, 11)
"""Releases in which overlap scheduling is off unless OVERLAPPING is set; it is on from 0.5.11 (environ.py:459)."""
STANDALONE_SINCE = (0, 5, 8)
TOKEN_MAP = "--speculative-token-map"
READ_BY = ("EAGLE", "STANDALONE")


def _overlap_unset(configuration: Configuration) -> Iterator[Refusal]:
    """Chains without a choice between overlap scheduling and none. A tree cannot have it, so with a tree there is no
    choice."""
    choosing = [candidate for candidate in candidates(configuration) if _has_a_choice(candidate)]
    off = any(configuration.find("--disable-overlap-schedule"))
    trees = any(candidate.branching > 1 for candidate in choosing)
    if choosing and not off and not trees and _overlaps(configuration) is None:
        names = ", ".join(candidate.arm.name for candidate in choosing)
        yield Refusal(
            path="engine.env",
            message=f"{configuration.engine} turns off overlap scheduling for a chain ({names}) but not for the "
            f'baseline, unless {OVERLAPPING} is "1"; set this variable: "1" keeps it (only chains, '
            'experimental), "0" measures and serves without it',
        )


def _overlap_of_trees(configuration: Configuration) -> Iterator[Refusal]:
    for candidate in candidates(configuration) if _is_affected(configuration) and _overlaps(configuration) else ():
        if candidate.in_eagle_family and candidate.branching > 1:
            yield candidate.refused(
                "tree.topK",
                f"topK {candidate.branching} cannot be combined with {_name(configuration)}=1: write 1 (a chain), or "
                '"0" in spec.engine.env',
            )


def _unread_map(configuration: Configuration) -> Iterator[Refusal]:
    for candidate in candidates(configuration):
        if (parsed := candidate.flags.get(TOKEN_MAP)) and candidate.runs_as not in READ_BY:
            has = "brings one in its head (d2t)" if candidate.algorithm == "EAGLE3" else "reads none"
            yield parsed.refused(f"{parsed.written} is ignored by {candidate.algorithm}, which {has}; remove it")


def _has_a_choice(candidate: Candidate) -> bool:
    version = release(candidate.configuration.version) or ()
    standalone = candidate.algorithm == "STANDALONE" and version >= STANDALONE_SINCE
    affected = _is_affected(candidate.configuration) and candidate.arm.tree is not None
    return affected and (candidate.in_eagle_family or standalone)


def _is_affected(configuration: Configuration) -> bool:
    return SINCE <= (release(configuration.version) or ()) < UNTIL


def _name(configuration: Configuration) -> str:
    """The variable as the user wrote it: its older name takes precedence."""
    return str((variable(configuration.server, OVERLAPPING) or {}).get("name", OVERLAPPING))


def _overlaps(configuration: Configuration) -> bool | None:
    """Whether the variable turns overlap scheduling on; None if it is not set. A variable with another source
    (valueFrom) counts as set."""
    entry = variable(configuration.server, OVERLAPPING)
    return None if entry is None else str(entry.get("value", "")).lower() in YES


RULES = (
    EngineRule(
        id="overlap-said",
        check=_overlap_unset,
        reason="the candidate loses overlap scheduling, the baseline keeps it, and only the log says so",
        source="server_args.py:1686 of 0.5.6, :2002 of 0.5.7, :3001 of 0.5.10; :3469 of 0.5.11 has it on",
    ),
    EngineRule(
        id="overlap-of-trees",
        check=_overlap_of_trees,
        reason="ValueError: Spec v2 currently only supports topk = 1; 0.5.6 does not look",
        source="server_args.py:2012 of 0.5.7, :3011 of 0.5.10",
    ),
    EngineRule(
        id="token-map",
        check=_unread_map,
        reason="a warning in the log, and two candidates that differ in it alone are the same",
        source="eagle_worker_v2.py:325; eagle_worker.py:115 of 0.5.6, :94 of 0.4.5",
    ),
)
