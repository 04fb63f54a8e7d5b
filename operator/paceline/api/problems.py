"""Problems of a manifest, each with its path: what the API server would refuse, before it is asked."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from paceline.api.crd import KINDS, schema
from paceline.api.model import API_VERSION, GROUP, Model, as_sent
from paceline.api.rules import IMMUTABLE, DeskRule, Rule, activation
from paceline.api.types import LONGEST_NAME, NAME

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What to change in the field at `path`, written as in `spec.pools[0].candidates[1].tree.numDraftTokens`."""

    path: str
    message: str
    desk: bool = False
    """True if only the desk can know, not the API server."""
    note: bool = False
    """True if nothing has to change: what was not checked, or what will be slower."""
    line: int = 0
    column: int = 0
    """Of the field in its file, counted from 1; 0 if it has none."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidManifestError(ValueError):
    """A manifest that cannot be read."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def is_ours(manifest: Any) -> bool:
    """True for every kind and version of our group, and for a SpeculativeDeployment, whose group then is mistyped."""
    if not isinstance(manifest, Mapping):
        return False
    group = str(manifest.get("apiVersion", "")).partition("/")[0]
    return group == GROUP or manifest.get("kind") == "SpeculativeDeployment"


def problems(manifest: Mapping[str, Any]) -> list[Problem]:
    """All problems that show without the model's files and without a cluster."""
    kind = str(manifest.get("kind"))
    if manifest.get("apiVersion") != API_VERSION:
        return [Problem(path="apiVersion", message=f"must be {API_VERSION}; got {manifest.get('apiVersion')}")]
    if kind not in KINDS:
        return [Problem(path="kind", message=f"must be {' or '.join(KINDS)}; got {kind}")]
    try:
        model = read(KINDS[kind].spec, sent(manifest))
    except InvalidManifestError as invalid:
        return [*_metadata(manifest), *invalid.problems]
    return [*_metadata(manifest), *broken_rules(model, "spec")]


def sent(manifest: Mapping[str, Any]) -> str:
    """The manifest's spec, as JSON that kubectl would send."""
    return json.dumps(as_sent(manifest.get("spec")), default=str)


def read(model: type[M], spec: str) -> M:
    """A spec as `sent`. Raises InvalidManifestError where a field has the wrong shape; rules: `broken_rules`."""
    try:
        return model.model_validate_json(spec, by_alias=True, by_name=False)  # Python names are ours, not the API's
    except ValidationError as invalid:
        errors = _without_consequences(invalid.errors(include_url=False))
        raise InvalidManifestError([_problem(error, model) for error in errors]) from None


def broken_rules(model: Model, path: str) -> Iterator[Problem]:
    """The rules that `model`, which stands at `path`, and everything in it break; those of the desk only where the API
    server would accept it."""
    # Nothing of podTemplate: no rule reads it, and it may have numbers that CEL has not.
    document = model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"engine": {"pod_template"}})
    parts = list(_parts(model, document, path))
    refused = [
        Problem(path=at + below, message=message)
        for part, json, at in parts
        for rule in _broken(part, json)
        for below, message in rule.findings(json)
    ]
    yield from refused or (
        Problem(path=at + below, message=message, desk=True)
        for part, _, at in parts
        for rule in part.rules
        if isinstance(rule, DeskRule)
        for below, message in rule.broken(part)
    )


def _broken(model: Model, document: Mapping[str, Any]) -> Iterator[Rule]:
    if rules := [rule for rule in model.rules if isinstance(rule, Rule) and rule.cel != IMMUTABLE]:
        values = activation(document)
        yield from (rule for rule in rules if not rule.holds(values))


def _parts(model: Model, document: Mapping[str, Any], path: str) -> Iterator[tuple[Model, Mapping[str, Any], str]]:
    """The model and all models in it, each as JSON and with its path."""
    yield model, document, path
    for name, field in type(model).model_fields.items():
        value, at = getattr(model, name), f"{path}.{field.alias}"
        if isinstance(value, Model):
            yield from _parts(value, document[str(field.alias)], at)
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Model):
                    yield from _parts(item, document[str(field.alias)][i], f"{at}[{i}]")


def _without_consequences(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without lists that are too short only because items of theirs are wrong."""
    wrong = [error["loc"] for error in errors]
    return [e for e in errors if e["type"] != "too_short" or not any(_below(e["loc"], loc) for loc in wrong)]


def _below(outer: tuple[int | str, ...], loc: tuple[int | str, ...]) -> bool:
    return len(loc) > len(outer) and loc[: len(outer)] == outer


def _metadata(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    name = named.get("name", f"{named['generateName']}x" if "generateName" in named else None)
    if name is None:
        yield Problem(path="metadata.name", message="must be set")
    elif not isinstance(name, str) or not re.fullmatch(NAME.pattern, name) or len(name) > LONGEST_NAME:
        yield Problem(path="metadata.name", message=f"must {NAME.must}, at most {LONGEST_NAME}; got {name}")


def _problem(details: ErrorDetails, model: type[Model]) -> Problem:
    path = "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in details["loc"])
    match details["type"]:
        case "missing":
            message = "must be set"
        case "extra_forbidden":
            fields = _fields_beside(details["loc"], schema(model))
            near = get_close_matches(str(details["loc"][-1]), fields, n=1)
            name = str(details["loc"][-1])
            there = ELSEWHERE.get(name) or f"the fields are {', '.join(fields)}"
            message = f"is not a field here; {f'did you mean {near[0]}?' if near else there}"
        case "int_type" if isinstance(got := details["input"], str) and got.isdecimal():
            message = f"must be a number: write {got} without quotes"
        case "tuple_type" if not isinstance(details["input"], Mapping | list):
            message = f"must be a list: write [{details['input']}]"
        case "string_type":
            message = f"must be a string: put it in quotes; got {json.dumps(details['input'])[:100]}"
        case _:
            message = re.sub(r"^\w+ should ", "must ", details["msg"]).replace("after validation, ", "")
            if isinstance(got := details["input"], str | int | float) and len(str(got)) < 100:
                meant = _meant(got, message) if isinstance(got, str) else ""
                message = f"did you mean {meant}? It {message}" if meant else message
                message += f"; got {json.dumps(got)}"
    return Problem(path=path, message=message, desk=details["type"] == "keys")


ELSEWHERE: Mapping[str, str] = {
    **{
        name: f"write spec.engine.podTemplate.spec.{name}"
        for name in ("nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets", "volumes")
    },
    "resources": "write them in spec.engine.podTemplate, for the container `server`",
    "autoscaling": "leave replicas out, and let an autoscaler's target be the Deployment NAME-POOL",
}
"""What people write where Paceline has it in another place."""


def _meant(got: str, message: str) -> str:
    """The word of the message that `got` comes close to; "" if there is none."""
    if message.startswith("must be hf://") and re.fullmatch(r"[\w.-]+/[\w.-]+", got):
        return f"hf://{got}"
    if message.startswith("must be a version"):
        return got.removeprefix("v") if re.fullmatch(r"v[0-9].*", got) else ""
    words = [word for word in re.findall(r"[A-Za-z][A-Za-z0-9]+", message) if word != word.lower()]
    same = (word for word in words if word.lower() == got.lower())
    return next(same, "") or next(iter(get_close_matches(got, words, n=1, cutoff=0.75)), "")


def _fields_beside(loc: Sequence[int | str], node: Mapping[str, Any]) -> list[str]:
    for step in loc[:-1]:
        node = node["items"] if isinstance(step, int) else node["properties"][step]
    return list(node["properties"])
