"""A gate run's evidence as an in-toto statement: a pure function of the run's spec and rounds, so that whoever has
these can make it again and compare each field. Its text is what a signer signs."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from paceline import api
from paceline.api.problems import with_defaults
from paceline.api.round import Round, in_order
from paceline.core import BUCKETS, ArmOutcome, Outcome, Purpose, Scheme, Source
from paceline.core.canonical import without_empty
from paceline.core.manifest import Manifest, Object
from paceline.core.names import SIGNATURE
from paceline.core.record import from_status, to_status
from paceline.core.text import error_text
from paceline.evidence import fingerprint, question
from paceline.evidence.signature import Sealed, SignatureError, key_id, signer
from paceline.gate import without_more_rounds
from paceline.plan.objects import annotations
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.imported import contradictions, first_of
from paceline.plan.run.results import results as results_of
from paceline.plan.run.rounds import fitting

STATEMENT = "https://in-toto.io/Statement/v1"
EVIDENCE = "https://paceline.dev/evidence/v1"
"""Our predicate. A field with another meaning needs another number."""
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_TESTED: Mapping[str, str] = {Outcome.PROMOTE: "PASSED", Outcome.REJECT: "FAILED"}
_TESTS: Mapping[str, str] = {ArmOutcome.PROMOTABLE: "passedTests", ArmOutcome.REJECTED: "failedTests"}
"""Outcome → result of a test-result predicate, and the list of the arm; all others are WARNED, in warnedTests."""
_UNMEASURED = ("podLabels", "queueName")
"""Fields of a spec about pods that no imported run has."""
_DIGESTS = {
    Scheme.HUB: "gitCommit",
    Scheme.IMAGE: "sha256",
    Scheme.CLAIM: "paceline.dev/files",
    **dict.fromkeys(BUCKETS, "paceline.dev/objects"),
}
"""Scheme of a model → name of its digest; of a claim it covers names and sizes of files, and config.json; of a bucket
keys, sizes and contents."""
_MEASURED_WITH = ("image", "clientImage", "paceline", "engineVersion", "gpuModel", "gpus", "driver", "datasets")
"""Fields of a round whose values a reader wants without reading rounds."""
_OWN = ("arm", "image", "version")
"""Fields of a replicate whose arm has an engine of its own."""
ODD = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Errors for a run or a text with values that the API server never stores."""


class StatementError(ValueError):
    """No statement, or one that its own rounds contradict; the text names the field."""


def statement(spec: Object, rounds: Sequence[Round]) -> Manifest:
    """The statement about a run with this spec. Raises StatementError, and ValueError for an invalid spec."""
    spec = with_defaults({"kind": "BenchmarkRun", "spec": spec})
    run = api.run({"kind": "BenchmarkRun", "spec": spec})
    if run.purpose is not Purpose.GATE:
        raise StatementError("spec: it must be a gate's, because a search and a sweep decide nothing")
    rounds, measured = in_order(rounds), fingerprint(spec)
    if wrong := next((one for one in rounds if one.fingerprint != measured), None):
        told = wrong.fingerprint or "absent"
        raise StatementError(f"round {wrong.round}: its fingerprint is {told}, but the spec's is {measured}")
    if len(fitting(run, rounds)) < len(rounds):
        raise StatementError("rounds: one has an arm or a workload that spec has not")
    arms, loads = len(run.arms), len(run.workloads)
    if long := next((one for one in rounds if len(one.replicates) > arms or len(one.points) > arms * loads), None):
        raise StatementError(f"round {long.round}: it has more servers or points than spec has arms and workloads")
    results = sum(not one.error for one in rounds)
    if run.measured and run.measured.rounds != results:
        raise StatementError(f"spec.measured.rounds: it is {run.measured.rounds}, but {results} rounds have a result")
    evidence = Evidence(spec=run, records=rounds)
    records = [to_status(one) for one in rounds]
    return {
        "_type": STATEMENT,
        "subject": list(_subjects(spec)),
        "predicateType": EVIDENCE,
        "predicate": {
            "question": question(spec),
            "fingerprint": measured,
            "emulated": any(one.emulated for one in rounds),
            "measuredWith": _measured_with(records),
            "verdict": _verdict(evidence, spec),
            "spec": _lean(spec),
            "rounds": records,
        },
    }


def _verdict(evidence: Evidence, spec: Object) -> Manifest:
    """The gate's, with the interval of each arm on each workload. Only numbers and names: sentences change."""
    verdict = without_more_rounds(evidence.verdict)
    bounds = [to_status(one) for one in results_of(evidence, spec).get("results") or ()]
    return {
        "outcome": verdict.outcome.value,
        "winner": verdict.winner or "",
        "rounds": verdict.rounds,
        "arms": {name: arm.outcome.value for name, arm in verdict.arms.items()},
        "intervals": [{key: one[key] for key in ("arm", "workload", "ratio", "lower", "upper")} for one in bounds],
    }


def _lean(spec: Object) -> Manifest:
    """The spec without empty fields, as in its question, so that fields of a later release change no text. What
    stays: an empty gate, as one is asked for, and empty arguments of an arm's engine: they replace the shared ones."""
    lean = {"gate": {}, **without_empty(spec)}
    for arm, full in zip(lean["arms"], spec["arms"], strict=True):
        if (full.get("engine") or {}).get("args") == []:
            arm["engine"] = {**arm.get("engine", {}), "args": []}
    return lean


def _subjects(spec: Object) -> Iterator[Manifest]:
    """The target and each head, with the digests that are known."""
    models = [spec["target"], *(arm["draft"] for arm in spec["arms"] if (arm.get("draft") or {}).get("source"))]
    known = {model["source"]: Source.parse(model["source"]) for model in models}
    commits = {model["source"]: known[model["source"]].digest or model.get("commit") for model in models}
    if not any(commits.values()):
        raise StatementError("spec: neither its target nor a head has a commit: a statement needs a subject")
    for name, commit in commits.items():
        if commit:
            yield {"name": name, "digest": {_DIGESTS[known[name].scheme]: commit}}


def _measured_with(records: Sequence[Manifest]) -> Manifest:
    """The different values of each of these fields, in the order of the rounds, and of an arm's own engine's."""
    found: dict[str, list[Any]] = {}
    own = [{key: one[key] for key in _OWN if key in one} for record in records for one in record["replicates"]]
    values = [(key, record[key]) for record in records for key in _MEASURED_WITH if record.get(key)]
    for key, value in (*values, *(("arms", arm) for arm in own if len(arm) > 1)):
        if value not in found.setdefault(key, []):
            found[key].append(value)
    return found


def to_text(value: Object) -> str:
    """The only text of a statement: JSON with sorted keys and without spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def made_again(text: str, now: datetime) -> Manifest:
    """The statement, made again from its spec and rounds. Raises StatementError with the fields that differ."""
    try:
        return _made_again(text, now)
    except StatementError:
        raise
    except ODD as error:
        raise StatementError(f"it is no statement about a run: {error_text(error)}") from error


def _made_again(text: str, now: datetime) -> Manifest:
    stated = json.loads(text)
    if (kind := stated["predicateType"]) != EVIDENCE:
        raise StatementError(f"predicateType: it is {kind}, but only {EVIDENCE} has the rounds to judge")
    spec, rounds = stated["predicate"]["spec"], [from_status(Round, one) for one in stated["predicate"]["rounds"]]
    made = statement(spec, rounds)
    found = list(_differences(stated, made))
    if not found and text != to_text(made):
        found = ["its text was written anew: sign the file as `paceline evidence export` has written it"]
    run = api.run({"kind": "BenchmarkRun", "spec": spec})
    if wrong := found or list(contradictions(run, in_order(rounds), now)):
        raise StatementError(first_of(wrong))
    return made


def signed_by(run: Object, rounds: Sequence[Round], keys: Mapping[str, str]) -> str:
    """Which of `keys` (name → PEM) has signed the statement of a run with these rounds, by the run's annotation: the
    key's id. Nothing of the statement is stored but its signature. Raises SignatureError and StatementError."""
    sealed = Sealed(text=to_text(statement(run["spec"], rounds)), signature=annotations(run).get(SIGNATURE, ""))
    return key_id(keys[signer(sealed, keys)])


def is_signed(run: Object, rounds: Sequence[Round], keys: Mapping[str, str]) -> bool:
    """Whether these are, still, rounds that a listed key has signed, if any is listed."""
    with suppress(SignatureError, StatementError):
        return not keys or bool(signed_by(run, rounds, keys))
    return False


def _differences(stated: Any, made: Any, path: str = "") -> Iterator[str]:
    """Each field with another value than the recomputed one."""
    if isinstance(stated, Mapping) and isinstance(made, Mapping):
        for key in sorted({*stated, *made}):
            yield from _differences(stated.get(key), made.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        for number, (one, other) in enumerate(zip(stated, made, strict=True)):
            yield from _differences(one, other, f"{path}[{number}]")
    elif type(stated) is not type(made) or stated != made:
        yield f"{path}: stated {_short(stated)}, recomputed {_short(made)}"


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def portable(run: Object, rounds: Sequence[Round]) -> Manifest:
    """The spec of a run with these rounds as another cluster can take it in: with `measured`, without what only a run
    that starts pods needs."""
    kept = {key: value for key, value in run["spec"].items() if key not in _UNMEASURED}
    if "gate" in kept:
        kept["gate"] = {key: value for key, value in kept["gate"].items() if key != "roundsOf"}
    results = [one for one in rounds if not one.error]
    node = results[-1].node if results else ""
    measured = {"machine": node or "a cluster", "note": "measured in a cluster", "rounds": len(results)}
    return {**kept, "measured": run["spec"].get("measured") or measured}


def as_test_result(statement: Object) -> Manifest:
    """The statement in short, by the predicate that in-toto has for the results of tests. It names the evidence by the
    digest of its text."""
    verdict = statement["predicate"]["verdict"]
    digest = hashlib.sha256(to_text(statement).encode()).hexdigest()
    tests: dict[str, list[str]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    for name, outcome in verdict["arms"].items():
        tests[_TESTS.get(outcome, "warnedTests")].append(name)
    result = {"result": _TESTED.get(verdict["outcome"], "WARNED"), **tests}
    evidence = {"name": EVIDENCE, "digest": {"sha256": digest}}
    return {**statement, "predicateType": TEST_RESULT, "predicate": {**result, "configuration": [evidence]}}
