"""A pool and the candidates that are measured for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from paceline.api.compatibility import FIELDS_OF_SHAPE, ONE_SHAPE
from paceline.api.draft import OF_DEPTHS, DraftSpec, ShapeSpec
from paceline.api.gate import GateSpec
from paceline.api.load import LoadSpec, overlap
from paceline.api.model import SchemaModel
from paceline.api.rules import Rule, Violation
from paceline.core import SHAPES, EndpointPickerReference, Engine, Range, Widths
from paceline.core.gateway import HeaderValue
from paceline.core.types import Arguments, ArmName, PoolName, Unique
from paceline.engines import ENGINES

WITH_TREES = tuple(algorithm for algorithm, shape in SHAPES.items() if shape == "tree")


class CandidateSpec(ShapeSpec):
    """One way to serve, measured against the baseline: with speculation, another engine, or both."""

    rules = (
        ONE_SHAPE,
        Rule(
            cel="!(self.name in ['baseline', 'incumbent'])",
            message="name must not be 'baseline', the arm without speculation, nor 'incumbent', the arm that serves "
            "when a changed spec is measured; got {self.name}",
            field=".name",
        ),
        *OF_DEPTHS,
    )

    @property
    def shapes(self) -> bool:
        """Whether it speculates."""
        return any(getattr(self, name) is not None for name in FIELDS_OF_SHAPE)

    draft: DraftSpec | None = None
    """Replaces spec.draft as a whole. A candidate without a shape (tree … custom) has no draft."""


TWINS = "draft, shape and arguments of two candidates are equal; remove one of them"


RULES: Mapping[type[Any], tuple[Rule, ...]] = dict.fromkeys(
    (Range, Widths),
    (
        Rule(
            cel="self.min <= self.max",
            message="min must be at most max = {self.max}; got {self.min}",
            field=".min",
        ),
    ),
)


class SearchSpec(SchemaModel):
    """Trees of spec.draft that a search may try: all depths, and powers of two as branchings and widths; fewer from a
    large range, so that at most 47 arms are compared with the baseline. The engine's adaptive mode, if any, is tried
    too. Write trees of another draft as candidates with that draft."""

    num_steps: Range
    """Depths."""
    top_k: Range
    """Branchings; 1 is a chain."""
    num_draft_tokens: Widths
    """Verify widths, the root included."""


class PoolSpec(SchemaModel):
    """Identical replicas with their own traffic and their own best configuration."""

    rules = (
        Rule(
            cel="self.load.exists(l, has(l.concurrency) || has(l.ramp) || has(l.maxConcurrency))",
            message="load must have a concurrency, a ramp, or requestRate with maxConcurrency, which limits what a "
            "server takes at a time",
            field=".load",
        ),
        Rule(
            each={"l": "self.load"},
            cel="(has(l.concurrency) ? self.load.filter(m, has(m.concurrency) &&"
            f" m.concurrency.exists(c, c in l.concurrency) && {overlap('m', 'l')}).size()"
            f" : self.load.filter(m, {overlap('m', 'l')}).size()) == 1",
            message="datasets must be in only one load if it has a requestRate or a ramp, and once per concurrency: "
            "to measure one under two loads, list it in benchmark.datasets under a second name, such as "
            "code-ramp",
            field=".datasets",
        ),
        Rule(
            cel="!has(self.search) || self.load.all(l, has(l.concurrency))",
            message="load must have only concurrency in a pool with search, which compares throughput at each "
            "concurrency",
            field=".load",
        ),
    )

    name: PoolName
    """Name of the pool. Its objects are named NAME-POOL; beyond 63 characters it is cut and ends in a hash."""
    replicas: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Number of servers. If absent one is started, and an autoscaler may set another number."""
    load: Annotated[tuple[LoadSpec, ...], Field(min_length=1, max_length=8)]
    """Loads under which datasets are measured."""
    candidates: Annotated[tuple[ArmName, ...], Field(max_length=15), Unique()] | None = None
    """Names of the spec's candidates that are measured for this pool; all if absent. With `search` they are among the
    arms that it tries."""
    search: SearchSpec | None = None
    """Trees to search: a run with `search` measures some of them; a gate then judges the best."""
    gate: GateSpec | None = None
    """Overrides fields of spec.gate."""
    header_value: HeaderValue | None = None
    """Value of spec.gateway's header that leads to this pool; the pool's name if absent."""
    endpoint_picker_ref: EndpointPickerReference | None = None
    """Makes an InferencePool of the pool's servers; the route of spec.gateway then leads to it."""


def hidden_twins(candidates: Sequence[CandidateSpec], default: DraftSpec | None, shared: Engine) -> Iterator[Violation]:
    """Candidates that are equal once the default draft is filled in and arguments have one form; and those that are the
    baseline."""
    forms = [(candidate.name, canonical(candidate, default, shared)) for candidate in candidates]
    for j, (name, form) in enumerate(forms):
        own = candidates[j].engine
        if own and not candidates[j].shapes and _form(own.of(shared)) == _form(shared):
            yield f".candidates[{j}].engine", "must differ from spec.engine: without a shape this is the baseline"
        elif twin := next((earlier for earlier, same in forms[:j] if same == form), None):
            yield f".candidates[{j}]", f"{name} is the same as {twin}: {TWINS}"


def _form(engine: Engine) -> tuple[Any, ...]:
    args = _by_flag(engine.args, engine.type)
    return engine.type, engine.version, engine.image, args, sorted(map(str, engine.env)), engine.tensor_parallel_size


def canonical(candidate: CandidateSpec, default: DraftSpec | None, shared: Engine) -> tuple[Any, ...]:
    """A form in which equal candidates are equal. These do not differ: MTP and NEXTN; names of algorithms in any case;
    `--a b` and `--a=b`; different flags in any order (the order of a repeated flag may matter); `--a-b` and `--a_b` if
    the engine takes both; JSON in any layout. An algorithm's own flags and the candidate's flags are part of one
    command."""
    draft = (candidate.draft or default) if candidate.shapes else None
    name = draft and (draft.name or "").upper()
    head = draft and (draft.algorithm.replace("MTP", "NEXTN"), name, draft.source, draft.revision)
    shape = [getattr(candidate, field) for field in FIELDS_OF_SHAPE if field != "custom"]
    own = candidate.custom.args if candidate.custom else None
    engine = candidate.engine.of(shared) if candidate.engine else shared
    return head, _form(engine), *shape, own is None, _by_flag((*(own or ()), *candidate.args), engine.type)


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
    """A JSON object or list in one layout; any other value unchanged."""
    if not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.dumps(json.loads(value), sort_keys=True)
    except (ValueError, RecursionError):
        return value
