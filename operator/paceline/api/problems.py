"""Problems of a manifest, each with its path: what the API server would refuse."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from paceline.api.crd import CRD_KINDS, rules_of, schema
from paceline.api.model import API_VERSION, GROUP, SchemaModel, as_sent, fields_of
from paceline.api.reasons import Reason
from paceline.api.round import ROUND_KIND
from paceline.api.rules import DeskRule, Rule, activation
from paceline.core.types import LONGEST_NAME, NAME, VALIDATIONS

M = TypeVar("M", bound=SchemaModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What to change in the field at `path`, written as in `spec.pools[0].candidates[1].tree.numDraftTokens`."""

    path: str
    message: str
    desk: bool = False
    """True if only `paceline validate` finds it, not the API server."""
    note: bool = False
    """True if nothing has to change: something was not checked, or will be slower."""
    line: int = 0
    column: int = 0
    """Place of the field in its file, counted from 1; 0 without a file."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidManifestError(ValueError):
    """A manifest that cannot be read."""

    def __init__(self, problems: list[Problem], reason: Reason = Reason.InvalidSpec) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems
        self.reason = reason


def is_ours(manifest: Any) -> bool:
    """True for every version of our group's kinds that people write, and for a SpeculativeDeployment of any group,
    which is a typing error."""
    if not isinstance(manifest, Mapping) or manifest.get("kind") == ROUND_KIND:
        return False
    group = str(manifest.get("apiVersion", "")).partition("/")[0]
    return group == GROUP or manifest.get("kind") == "SpeculativeDeployment"


def problems(manifest: Mapping[str, Any]) -> list[Problem]:
    """All problems that can be found without the model's files and without a cluster."""
    kind = str(manifest.get("kind"))
    if manifest.get("apiVersion") != API_VERSION:
        return [Problem(path="apiVersion", message=f"must be {API_VERSION}; got {manifest.get('apiVersion')}")]
    if kind not in CRD_KINDS:
        return [Problem(path="kind", message=f"must be {' or '.join(CRD_KINDS)}; got {kind}")]
    if not issubclass(spec := CRD_KINDS[kind].spec, SchemaModel):
        return [*_metadata(manifest)]  # written by Paceline, and read as leniently as a status
    try:
        text = sent(manifest)
        model = read_spec(spec, text)
    except InvalidManifestError as invalid:
        return [*_metadata(manifest), *invalid.problems]
    return [*_metadata(manifest), *broken_rules(model, text)]


def sent(manifest: Mapping[str, Any]) -> str:
    """The manifest's spec, as JSON that kubectl would send."""
    return json.dumps(as_sent(manifest.get("spec")), default=str)


def read_spec(model: type[M], spec: str) -> M:
    """A spec as `sent`. Raises InvalidManifestError if a field has the wrong shape; for rules see `broken_rules`."""
    try:
        return model.model_validate_json(spec, by_alias=True, by_name=False)  # Python names are ours, not the API's
    except ValidationError as invalid:
        errors = _without_consequences(invalid.errors(include_url=False))
        raise InvalidManifestError([_problem(error, model) for error in errors]) from None


def broken_rules(spec: SchemaModel, text: str) -> Iterator[Problem]:
    """The rules that a spec, read from `text`, and its parts break; rules that CEL cannot express are checked only if
    the API server would accept the spec."""
    document = _defaulted(json.loads(text), schema(type(spec)))
    document.get("engine", {}).pop("podTemplate", None)  # no rule reads it, and it may have numbers that CEL lacks
    parts = list(_parts(spec, document, "spec"))
    refused = [
        Problem(path=at + below, message=message)
        for part, entry, at in parts
        for rule in _broken(part, entry)
        for below, message in rule.findings(entry)
    ]
    yield from refused or (
        Problem(path=at + below, message=message, desk=True)
        for part, _, at in parts
        for rule in rules_of(type(part))
        if isinstance(rule, DeskRule)
        for below, message in rule.broken(part)
    )


def with_defaults(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest's spec as the API server stores it."""
    spec: dict[str, Any] = _defaulted(as_sent(manifest["spec"]), schema(CRD_KINDS[manifest["kind"]].spec))
    return spec


def _defaulted(document: Any, node: Mapping[str, Any]) -> Any:
    """The document with the defaults of its schema, as the API server writes them."""
    if isinstance(document, list):
        return [_defaulted(item, node.get("items", {})) for item in document]
    if not isinstance(document, dict):
        return document
    fields = node.get("properties", {})
    given = {name: below["default"] for name, below in fields.items() if "default" in below} | document
    return {name: _defaulted(value, fields.get(name, {})) for name, value in given.items()}


def _broken(part: Any, document: Mapping[str, Any]) -> Iterator[Rule]:
    if rules := [rule for rule in rules_of(type(part)) if isinstance(rule, Rule) and not rule.is_about_a_change]:
        values = activation(document)
        yield from (rule for rule in rules if not rule.holds(values))


def _parts(part: Any, document: Any, path: str) -> Iterator[tuple[Any, Mapping[str, Any], str]]:
    """A spec and all objects in it that are written, each as JSON and with its path."""
    if isinstance(part, tuple) and isinstance(document, list):
        for i, (item, entry) in enumerate(zip(part, document, strict=True)):
            yield from _parts(item, entry, f"{path}[{i}]")
    elif (fields := fields_of(type(part))) and isinstance(document, Mapping):
        yield part, document, path
        for alias, name in fields.items():
            if alias in document:
                yield from _parts(getattr(part, name), document[alias], f"{path}.{alias}")


def _without_consequences(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """The errors, without those about lists that are too short only because some of their items are wrong."""
    wrong = [error["loc"] for error in errors]
    return [e for e in errors if e["type"] != "too_short" or not any(_below(e["loc"], loc) for loc in wrong)]


def _below(outer: tuple[int | str, ...], loc: tuple[int | str, ...]) -> bool:
    return len(loc) > len(outer) and loc[: len(outer)] == outer


OBJECT = ("apiVersion", "kind", "metadata", "spec", "status")


def _metadata(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    for name in manifest:
        if name not in OBJECT:
            spec = schema(CRD_KINDS[str(manifest["kind"])].spec)["properties"]
            way_out = (
                f"is it spec.{name}, and indented too little?" if name in spec else f"there are {', '.join(OBJECT)}"
            )
            yield Problem(path=str(name), message=f"is not a field here; {way_out}")
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    name = named.get("name", f"{named['generateName']}x" if "generateName" in named else None)
    if name is None:
        yield Problem(path="metadata.name", message="must be set")
    elif not isinstance(name, str) or not re.fullmatch(NAME.pattern, name) or len(name) > LONGEST_NAME:
        yield Problem(path="metadata.name", message=f"must {NAME.must}, at most {LONGEST_NAME}; got {name}")


def _problem(details: ErrorDetails, model: type[SchemaModel]) -> Problem:
    path = "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in details["loc"])
    match details["type"]:
        case "missing":
            message = "must be set"
        case "extra_forbidden" | "unexpected_keyword_argument":
            fields = _fields_beside(details["loc"], schema(model))
            near = get_close_matches(str(details["loc"][-1]), fields, n=1)
            name = str(details["loc"][-1])
            there = _ELSEWHERE.get(name) or f"the fields are {', '.join(fields)}"
            message = f"is not a field here; {f'did you mean {near[0]}?' if near else there}"
        case "int_type" if isinstance(got := details["input"], str) and got.isdecimal():
            message = f"must be a number: write {got} without quotes"
        case "tuple_type" if not isinstance(details["input"], Mapping | list):
            message = f"must be a list: write [{details['input']}]"
        case "string_type":
            message = _no_string(details["input"], details["loc"], schema(model))
        case _:
            message = re.sub(r"^\w+ should ", "must ", details["msg"]).replace("after validation, ", "")
            if isinstance(got := details["input"], str | int | float) and len(str(got)) < 100:
                meant = _meant(got, message) if isinstance(got, str) else ""
                message = f"did you mean {meant}? It {message}" if meant else message
                message += f"; got {json.dumps(got)}"
    return Problem(path=path, message=message, desk=details["type"] == "keys")


def _no_string(got: Any, loc: Sequence[int | str], node: Mapping[str, Any]) -> str:
    """What to write instead of a value that is not a string: quotes help only if the string then has the field's
    form."""
    shown = json.dumps(got)[:100]
    if loc[:1] == ("pools",) and "candidates" in loc:
        return f"must be the name of one of spec.candidates: move it there; got {shown}"
    forms = [form for form in _node(loc, node).get(VALIDATIONS, ()) if form["rule"].startswith("self.matches(r'")]
    patterns = [form["rule"].removeprefix("self.matches(r'").removesuffix("')") for form in forms]
    if isinstance(got, Mapping | list) or all(re.fullmatch(pattern, str(got), re.ASCII) for pattern in patterns):
        return f"must be a string: put it in quotes; got {shown}"
    return f"{forms[0]['message']}; got {shown}"


_ELSEWHERE: Mapping[str, str] = {
    **{
        name: f"write spec.engine.podTemplate.spec.{name}"
        for name in ("affinity", "priorityClassName", "imagePullSecrets", "volumes")
    },
    **{name: f"write spec.{name}" for name in ("nodeSelector", "tolerations")},
    "resources": "write them in spec.engine.podTemplate, for the container `server`",
    "concurrency": "write load: [{concurrency: [1, 16]}]",
    "autoscaling": "leave replicas out, and let an autoscaler scale the Deployment NAME-POOL",
}
"""Fields that people write by mistake → where Paceline has them."""


def _meant(got: str, message: str) -> str:
    """What the user probably meant: `got` in the right form, or the word of the message that is similar to it; "" if
    neither is found."""
    if message.startswith("must be hf://") and re.fullmatch(r"[\w.-]+/[\w.-]+", got):
        return f"hf://{got}"
    if message.startswith("must be a version"):
        return got.removeprefix("v") if re.fullmatch(r"v[0-9].*", got) else ""
    words = [word for word in re.findall(r"[A-Za-z][A-Za-z0-9]+", message) if word != word.lower()]
    same = (word for word in words if word.lower() == got.lower())
    return next(same, "") or next(iter(get_close_matches(got, words, n=1, cutoff=0.75)), "")


def _fields_beside(loc: Sequence[int | str], node: Mapping[str, Any]) -> list[str]:
    return list(_node(loc[:-1], node)["properties"])


def _node(loc: Sequence[int | str], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the field at `loc`, below `node`."""
    for step in loc:
        node = node["items"] if isinstance(step, int) else node.get("properties", {}).get(step, {})
    return node
