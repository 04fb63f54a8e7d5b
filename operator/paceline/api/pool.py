"""A pool and the candidates that are measured for it."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from paceline.api.compatibility import COUNT_OF_SHAPES, FIELDS_OF_SHAPE, KINDS_OF_SHAPE, ONE_SHAPE, shapes_of
from paceline.api.gate import GateSpec
from paceline.api.later import not_yet
from paceline.api.model import Finding, Model, Rule, Unique
from paceline.api.parts import OF_SCHEDULE, AdaptiveSpec, CustomSpec, DraftSpec, NgramSpec, Schedule, TreeSpec
from paceline.api.search import SearchSpec
from paceline.api.words import Arguments, ArmName, DatasetName, PoolName
from paceline.core import BASELINE
from paceline.engines import ENGINES


def _called_baseline(candidate: "CandidateSpec") -> Iterator[Finding]:
    if candidate.name == BASELINE:
        yield ".name", "name must not be 'baseline': that is the arm without speculation"


def _one_shape(candidate: "CandidateSpec") -> Iterator[Finding]:
    if len(shapes_of(candidate)) != 1:
        yield "", ONE_SHAPE


class CandidateSpec(Model):
    """One way to speculate, measured against the baseline."""

    rules = (
        Rule(
            cel=f"{COUNT_OF_SHAPES} == 1",
            message=ONE_SHAPE,
            broken=_one_shape,
        ),
        Rule(
            cel="self.name != 'baseline'",
            message="name must not be 'baseline': that is the arm without speculation",
            field=".name",
            broken=_called_baseline,
        ),
        *OF_SCHEDULE,
    )

    name: ArmName
    """Name in results."""
    draft: DraftSpec | None = None
    """Replaces spec.draft as a whole."""
    tree: TreeSpec | None = None
    """Shape of a proposal, for EAGLE, EAGLE3, NEXTN, MTP and STANDALONE."""
    block_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """Tokens proposed at once, for DFLASH and DSPARK."""
    ngram: NgramSpec | None = None
    """How NGRAM finds drafts in the text; may be {}."""
    adaptive: AdaptiveSpec | None = None
    """Instead of a tree: a chain whose depth the engine chooses; may be {}."""
    schedule: Schedule | None = None
    """Instead of a tree: depth of the chain by batch size, from 1 on."""
    custom: CustomSpec | None = None
    """Instead of a tree, for Custom: the algorithm's own flags; may be {}."""
    args: Arguments = ()
    """Speculation flags without a field here, for this arm only; all other flags belong in engine.args."""


def _candidates_or_search(pool: "PoolSpec") -> Iterator[Finding]:
    if (pool.candidates is None) == (pool.search is None):
        yield "", CANDIDATES_OR_SEARCH


def _twins(pool: "PoolSpec") -> Iterator[Finding]:
    """Without arguments and with the same draft in so many words; the rest is for `hidden_twins`."""
    for j, one in enumerate(pool.candidates or ()):
        for other in (pool.candidates or ())[:j]:
            if not one.args and not other.args and _what(one) == _what(other):
                yield f".candidates[{j}]", _same(one.name, other.name)
                break


def _what(candidate: "CandidateSpec") -> tuple[Any, ...]:
    return candidate.draft, *(getattr(candidate, field) for field in FIELDS_OF_SHAPE)


def _same(name: str, other: str) -> str:
    return f"{name} is the same as {other}: {TWINS}"


TWINS = "draft, shape and arguments of two candidates are equal; remove one of them"
CANDIDATES_OR_SEARCH = "exactly one of candidates and search must be set"
_SAME = " && ".join(
    f"has(c.{field}) == has(d.{field}) && (!has(c.{field}) || c.{field} == d.{field})"
    for field in ("draft", *KINDS_OF_SHAPE)
)


class PoolSpec(Model):
    """Identical replicas with their own traffic and their own best configuration."""

    rules = (
        Rule(
            cel="has(self.candidates) != has(self.search)", message=CANDIDATES_OR_SEARCH, broken=_candidates_or_search
        ),
        Rule(
            cel="!has(self.candidates) || self.candidates.all(c, (has(c.args) && c.args.size() > 0) ||"
            f" self.candidates.exists_one(d, (!has(d.args) || d.args.size() == 0) && {_SAME}))",
            message=f"candidates must differ: {TWINS}",
            field=".candidates",
            broken=_twins,
        ),
        *not_yet("PoolSpec"),
    )

    name: PoolName
    """Name of the pool. Its objects are named NAME-POOL."""
    replicas: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Number of servers; an autoscaler sets it if absent."""
    concurrency: Annotated[
        tuple[Annotated[int, Field(ge=1, le=4096)], ...],
        Field(min_length=1, max_length=8),
        Unique(),
    ]
    """Concurrency levels, in simultaneous requests, to benchmark for this pool."""
    candidates: Annotated[tuple[CandidateSpec, ...], Field(min_length=1, max_length=15), Unique(("name",))] | None = (
        None
    )
    """Configurations to measure against the baseline."""
    search: SearchSpec | None = None
    """Not implemented. Trees to search instead of named candidates."""
    gate: GateSpec | None = None
    """Overrides fields of spec.gate."""
    datasets: Annotated[tuple[DatasetName, ...], Field(min_length=1, max_length=16), Unique()] | None = None
    """Names of the datasets to measure on; all if absent."""


def hidden_twins(pool: PoolSpec, default: DraftSpec | None, engine: str) -> Iterator[Finding]:
    """Candidates that are the same once the default draft is filled in and arguments are written in one way."""
    found = [(one, canonical(one, default, engine)) for one in pool.candidates or ()]
    said = {path for path, _ in _twins(pool)}
    for j, (one, what) in enumerate(found):
        other = next((other for other, same in found[:j] if same == what), None)
        if other and (path := f".candidates[{j}]") not in said:
            yield path, _same(one.name, other.name)


def canonical(candidate: CandidateSpec, default: DraftSpec | None, engine: str) -> tuple[Any, ...]:
    """MTP and NEXTN are one algorithm, whatever case the name of another is in, `--a b` and `--a=b` one argument,
    whatever the order of different flags; of one that comes again, the order may matter. So are `--a-b` and `--a_b`
    where the engine takes both, and JSON however it is laid out. An algorithm's own flags and the candidate's end up in
    one command."""
    draft = candidate.draft or default
    name = draft and (draft.name or "").upper()
    head = draft and (draft.algorithm.replace("MTP", "NEXTN"), name, draft.source, draft.revision)
    shape = [getattr(candidate, field) for field in FIELDS_OF_SHAPE if field != "custom"]
    own = candidate.custom.args if candidate.custom else None
    return head, *shape, own is None, _by_flag((*(own or ()), *candidate.args), engine)


def _by_flag(arguments: Arguments, engine: str) -> list[tuple[str, ...]]:
    """Each flag with all of its values, up to the next word that begins with `--`, sorted by flag alone."""
    flags, underscores = list[tuple[str, ...]](), ENGINES[engine].capabilities.underscores
    for argument in arguments:
        if argument.startswith("--"):
            flag, given, value = argument.partition("=")
            name, key, below = flag.partition(".")
            flag = f"{name.replace('_', '-')}{key}{below}" if underscores else flag
            flags.append((flag, _as_json(value)) if given else (flag,))
        else:
            flags[-1:] = [(*(flags[-1] if flags else ("",)), _as_json(argument))]
    return sorted(flags, key=lambda flag: flag[0])


def _as_json(value: str) -> str:
    """A value that is an object or a list, in one layout; any other as it is."""
    if not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.dumps(json.loads(value), sort_keys=True)
    except (ValueError, RecursionError):
        return value
