"""Rules about what a draft gets beside its shape: the worker that runs it, and the table of tokens it proposes from."""

from collections.abc import Iterator

from paceline.engines.adapter import Refusal
from paceline.engines.release import release
from paceline.engines.sglang.case import Candidate, Case, Rule
from paceline.engines.sglang.variables import variable

OVERLAPPING = "SGLANG_ENABLE_SPEC_V2"
"""Whether a chain is run by the worker that keeps overlap scheduling. Off where it is not set, from 0.5.6 to 0.5.10; on
from 0.5.11 (environ.py:459) and gone since 0.5.14 (arg_groups/speculative_hook.py:69)."""
SINCE, UNTIL = (0, 5, 6), (0, 5, 11)
STANDALONE_SINCE = (0, 5, 8)
YES = ("true", "1", "yes", "y")
"""As SGLang's EnvBool reads them (0.5.6, environ.py:101)."""
TOKEN_MAP = "--speculative-token-map"
READ_BY = ("EAGLE", "STANDALONE")


def _overlap_unsaid(case: Case) -> Iterator[Refusal]:
    """A tree cannot have it: beside one there is nothing to ask."""
    asked = [one for one in case.candidates if _has_a_choice(one)]
    off = any(one.name == "--disable-overlap-schedule" for one in case.shared)
    trees = any(one.branching > 1 for one in asked)
    if asked and not off and not trees and _said(case) is None:
        names = ", ".join(one.arm.name for one in asked)
        yield Refusal(
            path="engine.env",
            message=f"{case.engine} takes overlap scheduling from a chain ({names}) and leaves it to the baseline, "
            f'unless {OVERLAPPING} is "1"; write that variable: "1" keeps it (chains alone, and experimental), "0" '
            "measures and serves without",
        )


def _overlap_of_trees(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        if _is_of_it(case) and _said(case) and one.in_eagle_family and one.branching > 1:
            yield one.refused(
                "tree.topK",
                f"topK {one.branching} does not go with {_written(case)}=1: write 1 (a chain), or "
                '"0" in spec.engine.env',
            )


def _unread_map(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        if (found := one.written.get(TOKEN_MAP)) and one.runs_as not in READ_BY:
            has = "brings one in its head (d2t)" if one.algorithm == "EAGLE3" else "reads none"
            yield found.refused(f"{found.given.name} is ignored by {one.algorithm}, which {has}; remove it")


def _has_a_choice(one: Candidate) -> bool:
    version = release(one.case.version) or ()
    standalone = one.algorithm == "STANDALONE" and version >= STANDALONE_SINCE
    return _is_of_it(one.case) and one.arm.tree is not None and (one.in_eagle_family or standalone)


def _is_of_it(case: Case) -> bool:
    return SINCE <= (release(case.version) or ()) < UNTIL


def _written(case: Case) -> str:
    """As the user calls it: under the older name it wins over the newer one."""
    return str((variable(case.server, OVERLAPPING) or {}).get("name", OVERLAPPING))


def _said(case: Case) -> bool | None:
    """None where it is not said; what comes from elsewhere (valueFrom) is said."""
    found = variable(case.server, OVERLAPPING)
    return None if found is None else str(found.get("value", "")).lower() in YES


RULES = (
    Rule(
        id="overlap-said",
        broken=_overlap_unsaid,
        reason="the candidate loses overlap scheduling and the baseline keeps it, and only the log says so",
        source="server_args.py:1686 of 0.5.6, :2002 of 0.5.7, :3001 of 0.5.10; :3469 of 0.5.11 has it on",
    ),
    Rule(
        id="overlap-of-trees",
        broken=_overlap_of_trees,
        reason="ValueError: Spec v2 currently only supports topk = 1; 0.5.6 does not look",
        source="server_args.py:2012 of 0.5.7, :3011 of 0.5.10",
    ),
    Rule(
        id="token-map",
        broken=_unread_map,
        reason="a warning in the log, and two candidates that differ in it alone are the same",
        source="eagle_worker_v2.py:325; eagle_worker.py:115 of 0.5.6, :94 of 0.4.5",
    ),
)
