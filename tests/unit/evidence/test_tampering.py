"""Each field of a signed statement is changed: the signature refuses all; and if a listed signer signs the change, the
rounds, the question or the digests contradict it, or nobody can know."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args, get_origin

import pytest
from tests.support import signing
from tests.support.imported import file, real

from paceline.api.round import Round
from paceline.core.manifest import Manifest
from paceline.core.record import from_status, inner, is_record, slots, to_status
from paceline.evidence.signature import Sealed, SignatureError, signer, unsealed
from paceline.plan.run.statement import StatementError, made_again, to_text

NOW = datetime(2026, 11, 29, tzinfo=UTC)
DECIDES = {"error", "reason", "run", "imported", "request_speed"}
"""Fields of a round that a round with a judged speed in a closed loop has not."""
CANNOT_BE_KNOWN: Mapping[str, tuple[str, str]] = {
    "only its machine told where and when a round was carried out, and what else was there": (
        "rounds[].",
        "heldSeconds idleSeconds job node neighbours[] notes[] try raw.bytes raw.path raw.sha256",
    ),
    "only the server counted the tokens of prompts": (
        "rounds[].",
        "inputs[].clientCPU inputs[].clientLag inputs[].mean inputs[].p50 inputs[].p99 inputs[].workload prompts.*",
    ),
    "only the server, or its driver, told it of itself": (
        "rounds[].replicates[].",
        "clocks.celsius clocks.mostSMMHz clocks.powerLimitWatts clocks.smMHz clocks.throttled[].percent "
        "clocks.throttled[].reasons[] clocks.throttled[].workload differing differs[] exitCode kvTokens resolved.* "
        "restSHA256 seconds.end seconds.graphs seconds.image seconds.imports seconds.loads seconds.warmUp "
        "seconds.weights startSeconds",
    ),
    "without `parity` no answers are compared": (
        "rounds[].replicates[].parity.",
        "diverged divergedAt[] firstDivergence identical largestGap nearTies outputs samples unknown",
    ),
    "a number beside the one speed that the gate compares, without a limit on it": (
        "rounds[].points[].",
        "acceptLength acceptRate acceptedAt[] asked bestDecile cacheHitRate completed contexts[].meanTTFT "
        "contexts[].over contexts[].requests contexts[].speed contexts[].tokensPerChunk draftTokens energyPerToken "
        "errors goodRequests goodThroughput goodput keptRate malformed meanConcurrency meanE2E meanTPOT meanTTFT "
        "medianPrompt offeredRate outputThroughput outputTokens p50Output p50TPOT p50TTFT p90TTFT p95E2E p95TPOT "
        "p95TTFT p99ITL p99Output p99TPOT p99TTFT requestSpread retractions slowerPrompts verifyCalls warmUpGain "
        "warmUpWindows why worstDecile",
    ),
    "a person wrote it": ("spec.measured.", "machine note"),
    "no hash covers it: fewer requests are evidence for the same question": ("spec.workloads[].", "minRequests"),
}
"""Why a signer can change a field unnoticed → where it is in the predicate, and its names."""
UNKNOWABLE = [f"{above}{field}" for above, names in CANNOT_BE_KNOWN.values() for field in names.split()]


def sample(annotation: Any) -> Any:
    kind = inner(annotation)
    if is_record(kind):
        return filled(kind())
    if get_origin(kind) is tuple:
        return (sample(get_args(kind)[0]),)
    if get_origin(kind) is dict:
        return {"x": sample(get_args(kind)[1])}
    return {float: 1.5, int: 1, bool: False}.get(kind, "x")


def filled(one: Any) -> Any:
    """The record with a value in each field; those in DECIDES are left."""
    values = {slot.name: (getattr(one, slot.name), slot) for slot in slots(type(one)) if slot.name not in DECIDES}
    full = {
        name: tuple(map(filled, value)) if isinstance(value, tuple) and value and is_record(type(value[0])) else
        sample(slot.type) if value in (None, "", (), {}) else value
        for name, (value, slot) in values.items()
    }  # fmt: skip
    return replace(one, **full)


def full(round: Round) -> Round:
    return filled(real(round))  # type: ignore[no-any-return]


STATED = signing.stated(file(change=full))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield path
    for key, below in inside or ():
        yield from leaves(below, (*path, key))


def flipped(path: tuple[Any, ...]) -> Manifest:
    """The statement with another value there, written as Paceline writes it."""
    changed: Any = deepcopy(STATED)
    above = changed
    for key in path[:-1]:
        above = above[key]
    above[path[-1]] = another(above[path[-1]])
    predicate = changed["predicate"]
    predicate["rounds"] = [to_status(from_status(Round, one)) for one in predicate["rounds"]]
    return changed  # type: ignore[no-any-return]


def another(value: Any) -> Any:
    """Of the same type; a number far off."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value + 1
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return f"{2 * float(value) + 1:g}"
    return value[:-1] + ("a" if value[-1:] != "a" else "b")


def name(path: tuple[Any, ...]) -> str:
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def unknowable(path: tuple[Any, ...]) -> str | None:
    """The row of the table that names the field."""
    field = name(path).removeprefix("predicate.")
    return next((row for row in UNKNOWABLE if field == row or (row[-1] == "*" and field.startswith(row[:-1]))), None)


FIELDS = {name(path): path for path in leaves(STATED)}


def test_the_statement_itself_is_accepted() -> None:
    key = signing.key()
    sealed = unsealed(signing.as_bytes(signing.bundle(to_text(STATED), key)))
    assert signer(sealed, {"desk": signing.pem(key)}) == "desk"
    assert made_again(sealed.text, NOW) == STATED


def test_no_field_can_be_changed_under_a_signature() -> None:
    """All leaves, one at a time; and each byte of the signature's type and length counts, as DSSE has them."""
    key = signing.key()
    signature, keys = signing.signature(to_text(STATED), key), {"desk": signing.pem(key)}
    for path in leaves(STATED):
        with pytest.raises(SignatureError, match="no listed key has signed it"):
            signer(Sealed(text=to_text(flipped(path)), signature=signature), keys)


def test_what_a_listed_signer_changes_is_contradicted_or_cannot_be_known() -> None:
    """The test names a field that is in neither, and one that is in both."""
    key = signing.key()
    refused, accepted = Counter[str](), Counter[str]()
    for path in leaves(STATED):
        text = to_text(flipped(path))
        sealed = Sealed(text=text, signature=signing.signature(text, key))
        assert signer(sealed, {"desk": signing.pem(key)}) == "desk"
        try:
            made_again(sealed.text, NOW)
            accepted[name(path)] += 1
        except StatementError:
            refused[name(path)] += 1
    found = f"{len(FIELDS)} fields: {len(refused)} refused, {len(accepted)} cannot be known; leaves: "
    print(f"{found}{refused.total()} refused, {accepted.total()} cannot be known")
    assert [field for field in accepted if not unknowable(FIELDS[field])] == []
    assert [field for field in refused if field in accepted or unknowable(FIELDS[field])] == []
    assert sorted({*UNKNOWABLE} - {unknowable(path) for path in FIELDS.values()}) == []
