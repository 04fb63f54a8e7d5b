"""Reported problems of an engine's releases that no rule can detect: notes, none of which blocks.

Each engine has its own `data/known-problems.json`; CONTRIBUTING.md says how rows are added and ended.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.core import Arm, Server
from paceline.engines.arguments import UNLISTED
from paceline.engines.release import release

KnownProblem = Mapping[str, Any]
"""A row of an engine's `data/known-problems.json`."""


def found(
    problems: Iterable[KnownProblem], server: Server, arms: Iterable[Arm], classes: Iterable[str] = ()
) -> Iterator[str]:
    """One sentence per problem; `classes` are the target's, if known."""
    model = " ".join((server.target.source, *classes))
    algorithms = {arm.draft.algorithm for arm in arms if arm.draft}
    given = {parsed.written for parsed in UNLISTED.parse(server.engine.args)}
    for row in problems:
        if (
            _is_in(server.engine.version, row)
            and algorithms.intersection(row["algorithms"])
            and (not row.get("flags") or given.intersection(row["flags"]))
            and re.search(row.get("target", ""), model, re.IGNORECASE)
            and re.search(row.get("product", ""), server.accelerator.product, re.IGNORECASE)
        ):
            yield f"reported in {row['issue']}: {row['problem']}; way out: {row['wayOut']}"


def _is_in(version: str, row: Mapping[str, str]) -> bool:
    """Whether the version is in the row's range: from `since`, before `until`."""
    number, since, until = release(version), release(row["since"]), release(row.get("until", ""))
    return number is not None and since is not None and since <= number and (until is None or number < until)
