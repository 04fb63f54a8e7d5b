"""What is other in one question than in another, in words: which field, and from what to what."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Pool

Spec = Mapping[str, Any]
"""Of a BenchmarkRun."""

WORDS = {
    "target.source": "the target",
    "target.commit": "the target's commit",
    "engine.image": "the image",
    "largestConcurrency": "the largest concurrency",
    "gate.decideAfterRounds": "decideAfterRounds",
    "draft.source": "the head",
    "draft.commit": "the head's commit",
}
"""Path in a run's spec → what a person calls it, where the path itself would not do."""
UNSAID = ("engine.env", "engine.podTemplate", "engine.apiKeySecretRef", "engine.adminKeySecretRef")
"""Long, or nobody else's business: only that they changed is told."""
FLAGS = ("engine.args", "args", "custom.args")
"""Of arguments the names alone: a value may be a secret."""
LEFT_OUT = ("attempt", "trigger", "token", "podLabels", "roundsOf", "pool", "purpose", "arms", "workloads")
MOST = 4
"""Changes that are told one by one."""


def asked_anew(pool: Pool) -> str:
    """What is other in the question of now than in the one that was answered last; "" where none was."""
    last = answered_last(pool)
    return told(last.spec, pool.wanted) if last else ""


def answered_last(pool: Pool) -> Run | None:
    """What production goes by, if that answers another question than that of now; else the latest that does."""
    others = [run for run in pool.runs if run.outcome and run is not pool.decided and run.question != pool.question]
    evidence = pool.remembered.target.evidence if pool.remembered.target else None
    latest = sorted(others, key=lambda run: (run.name == evidence, run.finished_at))
    return latest[-1] if latest else None


def told(then: Spec, now: Spec) -> str:
    """In one line, as many as are readable."""
    found = list(changes(then, now))
    more = len(found) - MOST
    return "; ".join([*found[:MOST], *([f"and {more} more changes"] if more > 0 else [])])


def changes(then: Spec, now: Spec) -> Iterator[str]:
    """Each in a sentence: the server's first, then candidates, workloads and the rule."""
    was, new = (dict(_leaves({k: v for k, v in spec.items() if k not in LEFT_OUT})) for spec in (then, now))
    rule = ("gate.", "budget.")
    sentences = list(_differences(was, new))
    yield from (said for path, said in sentences if not path.startswith(rule))
    yield from _named("candidate", _by_name(then["arms"]), _by_name(now["arms"]))
    yield from _named("workload", _by_load(then["workloads"]), _by_load(now["workloads"]))
    yield from (said for path, said in sentences if path.startswith(rule))


def _named(what: str, then: Mapping[str, Spec], now: Mapping[str, Spec]) -> Iterator[str]:
    yield from (f"{what} {name} was added" for name in now if name not in then)
    yield from (f"{what} {name} was removed" for name in then if name not in now)
    for name in now:
        if name in then:
            for _, said in _differences(dict(_leaves(then[name])), dict(_leaves(now[name]))):
                yield f"{what} {name}: {said}"


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and sentence."""
    for path in dict.fromkeys((*then, *now)):
        was, new = then.get(path), now.get(path)
        if was == new or _follows(path, then, now):
            continue
        name = WORDS.get(path, path)
        if path in UNSAID:
            yield path, f"{name} changed"
        elif path in FLAGS:
            flags = {flag.partition("=")[0]: None for flag in (*(was or ()), *(new or ())) if _moved(flag, was, new)}
            yield path, f"{name} changed: {' '.join(flags) or 'another order'}"
        else:
            yield path, f"{name} changed: {_shown(was)} to {_shown(new)}"


def _follows(path: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Of another model another commit goes without saying."""
    source = path.removesuffix("commit") + "source"
    return path.endswith("commit") and then.get(source) != now.get(source)


def _moved(flag: str, then: Sequence[str] | None, now: Sequence[str] | None) -> bool:
    return (flag in (then or ())) != (flag in (now or ()))


def _leaves(value: Spec, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path → what is there; empty is as good as absent."""
    for key, inner in value.items():
        here = f"{path}{key}"
        if isinstance(inner, Mapping) and here not in UNSAID:
            yield from _leaves(inner, f"{here}.")
        elif inner not in (None, "", [], {}, ()):
            yield here, inner


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _by_name(arms: Sequence[Spec]) -> Mapping[str, Spec]:
    return {arm["name"]: {key: value for key, value in arm.items() if key != "name"} for arm in arms}


def _by_load(workloads: Sequence[Spec]) -> Mapping[str, Spec]:
    """By DATASET@CONCURRENCY, or by DATASET where it comes at a rate."""
    return {
        one["name"] if one.get("requestRate") else f"{one['name']}@{one['concurrency']}": {
            key: value for key, value in one.items() if key not in ("name", "concurrency")
        }
        for one in workloads
    }
