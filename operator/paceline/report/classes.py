"""The fastest arm of each dataset, and the file by which SGLang's fork chooses a tree per class of prompts."""

import json
from collections.abc import Iterator, Mapping

from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.manifest import Object
from paceline.report.model import ClassView, Report
from paceline.report.read import ordered_bounds

FORK = {"numSteps": "num_steps", "topK": "eagle_topk", "numDraftTokens": "num_draft_tokens"}
"""Keys of a tree here, and in `prompt_routing.py` of the fork tails-mpt/sglang, which no server of it reads yet."""


def class_views(spec: Object, status: BenchmarkRunStatus) -> Iterator[ClassView]:
    trees = {arm["name"]: _whole(arm["tree"]) for arm in spec["arms"] if arm.get("tree")}
    for one in status.classes:
        yield ClassView(
            dataset=one.dataset,
            best=one.best,
            arm=one.arm,
            rival=one.rival,
            bounds=ordered_bounds(one.ratio, one.lower, one.upper),
            tree=trees.get(one.best, {}),
        )


def _whole(tree: Object) -> Mapping[str, int]:
    """With the defaults of `core.Tree`."""
    return {"topK": 1, "numDraftTokens": tree["numSteps"] + 1, **tree}


def prompt_routing(report: Report) -> str:
    """JSON: dataset → tree of its best arm, of all runs; without datasets on which no tree is shown to be best. Raises
    ValueError for emulated rounds, whose speeds are nobody's, and for runs that name different trees."""
    if report.emulated:
        raise ValueError("the rounds are emulated: they choose no tree for real prompts")
    trees: dict[str, Mapping[str, int]] = {}
    for one in (one for run in report.runs for one in run.classes if one.tree):
        if trees.setdefault(one.dataset, one.tree) != one.tree:
            raise ValueError(f"{one.dataset}: two runs name different trees for it: report one of them")
    return json.dumps({name: {FORK[key]: tree[key] for key in FORK} for name, tree in trees.items()}, indent=2) + "\n"
