"""The differences between two questions, in sentences: which field changed, from which value to which."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.core import INCUMBENT
from paceline.core.manifest import Object
from paceline.core.text import count
from paceline.evidence.fingerprint import ENOUGH, PRICE, WHY

_WORDS = {
    "target.source": "the target",
    "target.commit": "the target's commit",
    "engine.image": "the image",
    "maxConcurrency": "the largest concurrency",
    "gate.decideAfterRounds": "decideAfterRounds",
    "draft.source": "the head",
    "draft.commit": "the head's commit",
}
"""Path in a run's spec → the name that a person uses for it; other paths are their own names."""
WITHOUT_VALUES = ("engine.env", "engine.podTemplate", "engine.apiKeySecretRef", "engine.adminKeySecretRef")
"""Paths with long or private values: the sentence says only that they changed."""
_FLAGS = ("engine.args", "args", "custom.args")
"""Paths of arguments: the sentence names only the flags, as a value may be a secret."""
LEFT_OUT = (*WHY, "pool", "arms", "workloads")
NO_QUESTION = ("gate.roundsOf", f"accelerator.{PRICE}")
"""Paths that say how a question is answered or what that costs, not what it asks."""
_MOST = 4
"""Maximum number of listed changes; the others are counted."""


def summary(then: Object, now: Object) -> str:
    """One line with the first changes and the number of the others."""
    listed = list(changes(then, now))
    more = len(listed) - _MOST
    return "; ".join([*listed[:_MOST], *([f"and {count(more, 'more change')}"] if more > 0 else [])])


def changes(then: Object, now: Object) -> Iterator[str]:
    """A sentence for each change: of the server first, then of candidates, workloads and the rule."""
    was, new = (dict(_leaves({k: v for k, v in spec.items() if k not in LEFT_OUT})) for spec in (then, now))
    rule = ("gate.", "budget.")
    sentences = list(_differences(was, new))
    yield from (sentence for path, sentence in sentences if not path.startswith(rule))
    yield from _named("candidate", _by_name(then["arms"]), _by_name(now["arms"]))
    yield from _named("workload", _by_load(then["workloads"]), _by_load(now["workloads"]))
    yield from (sentence for path, sentence in sentences if path.startswith(rule))


def _named(what: str, then: Mapping[str, Object], now: Mapping[str, Object]) -> Iterator[str]:
    yield from (f"{what} {name} was added" for name in now if name not in then)
    yield from (f"{what} {name} was removed" for name in then if name not in now)
    for name in now:
        if name in then:
            for _, sentence in _differences(dict(_leaves(then[name])), dict(_leaves(now[name]))):
                yield f"{what} {name}: {sentence}"


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and sentence of each change."""
    for path in dict.fromkeys((*then, *now)):
        was, new = then.get(path), now.get(path)
        if was == new or path in NO_QUESTION or _follows(path, then, now):
            continue
        name = _WORDS.get(path, path)
        if path in WITHOUT_VALUES:
            yield path, f"{name} changed"
        elif path in _FLAGS:
            flags = {flag.partition("=")[0]: None for flag in (*(was or ()), *(new or ())) if _moved(flag, was, new)}
            yield path, f"{name} changed: {' '.join(flags) or 'another order'}"
        else:
            yield path, f"{name} changed: {_shown(was)} to {_shown(new)}"


def _follows(path: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether this commit changed because the model did: the sentence about the model covers it."""
    source = path.removesuffix("commit") + "source"
    return path.endswith("commit") and then.get(source) != now.get(source)


def _moved(flag: str, then: Sequence[str] | None, now: Sequence[str] | None) -> bool:
    return (flag in (then or ())) != (flag in (now or ()))


def _leaves(value: Object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of each leaf; an empty value counts as absent."""
    for key, inner in value.items():
        here = f"{path}{key}"
        if isinstance(inner, Mapping) and here not in WITHOUT_VALUES:
            yield from _leaves(inner, f"{here}.")
        elif inner not in (None, "", [], {}, ()):
            yield here, inner


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _by_name(arms: Sequence[Object]) -> Mapping[str, Object]:
    """Without the incumbent, which is not asked about."""
    return {
        arm["name"]: {key: value for key, value in arm.items() if key != "name"}
        for arm in arms
        if arm["name"] != INCUMBENT
    }


def _by_load(workloads: Sequence[Object]) -> Mapping[str, Object]:
    """Workloads by DATASET@CONCURRENCY; by DATASET for a request rate or ramp, because a dataset has at most one of
    these."""
    return {
        load["name"] if load.get("requestRate") or load.get("rampFrom") else f"{load['name']}@{load['concurrency']}": {
            key: value for key, value in load.items() if key not in ("name", "concurrency", ENOUGH)
        }
        for load in workloads
    }
