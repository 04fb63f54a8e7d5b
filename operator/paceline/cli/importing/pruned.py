"""Removes from a just-imported resource what Paceline's rules refuse, with the rules' messages as notes."""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from paceline import api
from paceline.api import InvalidManifestError, Problem, problems
from paceline.cli.importing.arguments import readable
from paceline.core.manifest import Manifest
from paceline.engines import ENGINES, refusals_of_spec
from paceline.engines.importing import Note
from paceline.engines.refusal import Refusal

TAKEN_OUT = frozenset({
    "args-owned", "args-lossy", "args-unknown", "args-abbreviated", "args-misplaced",
    "owned-flag", "known-flag", "whole-flag",
    "key-variables", "key-variable", "pod-template",
}).union(*(adapter.importing.removed for adapter in ENGINES.values()))  # fmt: skip
"""Rules about settings that Paceline owns or that this engine release lacks. Refusals by other rules are left to a
person."""
TO_REMOVE = re.compile(r"[;:] (remove it|leave it out)$")
"""Advice in a rule's message that has already been followed."""
OF_AN_ITEM = ("name", "mountPath", "readOnly")
"""Fields without which the surrounding list item is removed too."""
_MOST = 500
"""Maximum refusals per resource; they are removed one at a time, because paths shift."""


def pruned(manifest: Manifest) -> tuple[Manifest, list[Note], list[Problem]]:
    """The pruned resource, its notes, and the remaining problems."""
    manifest, notes = deepcopy(manifest), list[Note]()
    for _ in range(_MOST):
        faults = problems(manifest)
        try:
            refused = refusals_of_spec.refused(api.deployment(manifest, ruled=False), manifest["spec"])
        except InvalidManifestError:
            return manifest, notes, faults
        one = next((refusal for refusal in refused if refusal.rule in TAKEN_OUT), None)
        if one is None:
            return manifest, notes, [*faults, *(Problem(path=each.path, message=each.message) for each in refused)]
        notes.append(_take_out(manifest, one))
    raise AssertionError("what is taken out is refused no more")


def _take_out(manifest: Manifest, refusal: Refusal) -> Note:
    *above, last = _steps(manifest, refusal.path)
    path, why = refusal.path, TO_REMOVE.sub("", refusal.message)
    if last in OF_AN_ITEM:
        why = f"{last} {why}"
        last, path = above.pop(), path.rpartition(".")[0]
    holders: list[Any] = [manifest]
    for step in above:
        holders.append(holders[-1][step])
    holder = holders[-1]
    if above[-1] == "args":
        words = _flag(holder, last)
        del holder[last : last + len(words)]
        what = readable(words)
    else:
        what = _called(holder.pop(last), path)
    for i in range(len(holders) - 1, 0, -1):  # remove what is now empty, too
        if not holders[i]:
            del holders[i - 1][above[i - 1]]
    return Note(path=what, text=f"left out: {why}")


def _called(gone: Any, path: str) -> str:
    """The path, with the item's name if it is in a list; without a command's words, one of which may be a secret."""
    below = path.removeprefix("spec.").removeprefix("engine.")
    shown = (
        [str(gone[key]) for key in ("name", "mountPath") if key in gone]
        if isinstance(gone, dict)
        else [f"{gone!s:.200}"]
    )
    return f"{below} ({', '.join(shown)})" if shown else below


def _flag(args: Sequence[str], start: int) -> list[str]:
    """The flag at this index and its values."""
    end = next((i for i in range(start + 1, len(args)) if args[i].startswith("-")), len(args))
    return list(args[start:end])


def _steps(manifest: Manifest, path: str) -> Iterator[Any]:
    """Splits the path into keys. Label keys contain dots; an item that does not exist is one key."""
    at: Any = manifest
    while path:
        if isinstance(at, dict) and path in at:
            yield path
            return
        match = re.match(r"\[(\d+)\]\.?|([^.\[]+)\.?", path)
        assert match, path
        step: Any = int(match[1]) if match[1] else match[2]
        yield step
        path = path[match.end() :]
        at = at[step] if isinstance(at, list) or (isinstance(at, dict) and step in at) else None
