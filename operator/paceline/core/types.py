"""The strings, lists and maps of the API: each with its bound, its pattern and the message for a mismatch."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from paceline.core.algorithms import ALGORITHMS, CUSTOM
from paceline.core.source import BUCKET, IMAGE
from paceline.core.text import duration, duration_text, fraction, percentage

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class Matches:
    """A string type: the entire string matches `pattern` (RE2 and Python alike); otherwise the user reads `must`."""

    pattern: str
    must: str

    def check(self, value: str) -> str:
        # Not search: Python's $ allows a trailing line end, RE2's does not.
        if not re.fullmatch(self.pattern, value, re.ASCII):
            raise PydanticCustomError("matches", "{must}", {"must": f"must {self.must}"})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), VALIDATIONS: [self.validation()]}

    def validation(self) -> dict[str, str]:
        """The entry of x-kubernetes-validations."""
        return {"rule": f"self.matches(r'{self.pattern}')", "message": f"must {self.must}"}


@dataclass(frozen=True, slots=True)
class Text:
    """A value that is a string of this form and maximum length in JSON: how it is read and written."""

    form: Matches
    longest: int
    read: Callable[[str], Any]
    write: Callable[[Any], str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.chain_schema([
            core_schema.str_schema(strict=True, max_length=self.longest),
            core_schema.no_info_plain_validator_function(lambda text: self.read(self.form.check(text))),
        ])  # fmt: skip
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(self.write, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest, VALIDATIONS: [self.form.validation()]}


@dataclass(frozen=True, slots=True)
class Unique:
    """A list without duplicate items, or without items that agree in these fields: the keys of a list-map, which is
    merged."""

    keys: tuple[str, ...] = ()

    def check(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = set()
        for item in items:
            value = tuple(getattr(item, key) for key in self.keys) if self.keys else (item,)
            if value in seen:
                what = " and ".join(map(to_camel, self.keys)) or "values"
                message = f"{what} must be unique; repeated: {', '.join(map(str, value))}"
                raise PydanticCustomError("unique", "{message}", {"message": message})
            seen.add(value)
        return items

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [to_camel(key) for key in self.keys]}
        return {**handler(schema), **(kind if self.keys else {"x-kubernetes-list-type": "set"})}


@dataclass(frozen=True, slots=True)
class KeysLike:
    """A map whose keys match `pattern`. Only the CLI checks it: keys are unbounded, so CEL's estimate forbids it."""

    pattern: str
    must: str

    def check(self, entries: dict[str, Any]) -> dict[str, Any]:
        for key in entries:
            if not re.fullmatch(self.pattern, key, re.ASCII) or len(key) > 253:
                raise PydanticCustomError("keys", "{message}", {"message": f"key {key[:100]!r} must {self.must}"})
        return entries

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


NAME = Matches(
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    "be lower-case letters, digits and '-', a letter first: the names of Services are made of it",
)
LONGEST_NAME = 63
"""Maximum characters of our objects' names: the name is also a label value."""

ObjectName = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "be a Kubernetes name: lower-case letters, digits, '-' and '.'"),
]
QueueName = Annotated[
    str,
    Field(max_length=63),
    Matches(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "be the name of a LocalQueue: lower-case letters, digits and '-'"),
]
SecretsKey = Annotated[
    str, Field(max_length=253), Matches(r"^[-._A-Za-z0-9]+$", "be a key of a Secret: letters, digits, '-', '_', '.'")
]
LabelValue = Annotated[
    str,
    Field(max_length=63),
    Matches(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", "be a label value, for example NVIDIA-H200"),
]
LABEL_KEY = r"^([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LabelKey = Annotated[str, Field(max_length=253), Matches(LABEL_KEY, "be a label key such as nvidia.com/gpu")]
PoolName = Annotated[
    str,
    Field(max_length=20),
    Matches(r"^[a-z][a-z0-9]*$", "be lower-case letters and digits, a letter first: no '-', which joins NAME-POOL"),
]
ArmName = Annotated[
    str, Field(max_length=30), Matches(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "be lower-case letters, digits and '-'")
]
DatasetName = ArmName
ServedName = Annotated[
    str,
    Field(max_length=200),
    Matches(
        r"^[^-:$\s][^:$\s]*$", "be the model's name in requests, without ':', '$', spaces and a '-' at its beginning"
    ),
]
AdapterName = Annotated[
    str,
    Field(max_length=200),
    Matches(r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$", "be a name as in requests: letters, digits, '_', '.', '/' and '-'"),
]

_REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*"
_PATH = r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)"
_IN_BUCKET = rf"(s3|gs)://{BUCKET}{_PATH}+"
_ON_CLAIM = rf"pvc://[a-z0-9][a-z0-9.-]*{_PATH}+"
SourceText = Annotated[
    str,
    Field(max_length=300),
    Matches(
        rf"^(hf://{_REPOSITORY}|{_IN_BUCKET}|{_ON_CLAIM}|oci://{IMAGE}{_PATH}*)$",
        "be hf://OWNER/NAME, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, pvc://CLAIM/PATH or "
        "oci://REGISTRY/REPOSITORY@sha256:DIGEST (a tag moves: write its digest)",
    ),
]
DatasetSource = Annotated[
    str,
    Field(max_length=300),
    Matches(
        r"^(builtin://(code|swe|terminal|chat)|configMap://[a-z0-9][a-z0-9.-]*/[-_A-Za-z0-9][-._A-Za-z0-9]*"
        rf"|{_ON_CLAIM}|hf://datasets/{_REPOSITORY}{_PATH}*)$",
        "be builtin://code, ://swe, ://terminal or ://chat, configMap://NAME/KEY, pvc://CLAIM/PATH or"
        " hf://datasets/OWNER/NAME/PATH (without @: branch, tag and commit have fields of their own)",
    ),
]
_DOTTED = r"(\.[A-Za-z0-9_-]+)*"
"""As in Git: a name must not have two dots in a row, or begin or end with one."""
Revision = Annotated[
    str,
    Field(max_length=200),
    Matches(rf"^[A-Za-z0-9_][A-Za-z0-9_-]*{_DOTTED}(/[A-Za-z0-9_-]+{_DOTTED})*$", "be a branch, tag or commit"),
]
Commit = Annotated[str, Field(max_length=64), Matches(r"^[0-9a-f]{7,64}$", "be the hash of a commit")]
HostPath = Annotated[
    str,
    Field(max_length=500),
    Matches(
        r"^(/([^/:.][^/:]*|\.[^/:.][^/:]*|\.\.[^/:]+))+/?$",
        "be an absolute path of a directory, such as /models, without '..' and ':'",
    ),
]


def _percentage(longest: int, pattern: str, must: str) -> Text:
    return Text(form=Matches(pattern, must), longest=longest, read=fraction, write=percentage)


Percentage = Annotated[float, _percentage(9, r"^[0-9]{1,3}(\.[0-9]{1,4})?%$", "be a percentage such as 25%")]
"""A fraction: 25% is 0.25."""
PercentageBelow100 = Annotated[
    float, _percentage(8, r"^[0-9]{1,2}(\.[0-9]{1,4})?%$", "be a percentage below 100%, such as 5%")
]
Confidence = Annotated[
    float,
    _percentage(8, r"^[5-9][0-9](\.[0-9]{1,4})?%$", "be a percentage of at least 50% and below 100%, such as 95%"),
]
Share = Annotated[
    float,
    _percentage(
        8,
        r"^([1-9][0-9]?(\.[0-9]{1,4})?|0\.0{0,3}[1-9][0-9]{0,3})%$",
        "be a percentage above 0% and below 100%, such as 25%",
    ),
]
AMOUNT = r"^([1-9][0-9]{0,5}(\.[0-9]{1,3})?|0\.0{0,2}[1-9][0-9]{0,2})$"
Amount = Annotated[
    str, Field(max_length=12), Matches(AMOUNT, "be a decimal string from '0.001' to '999999.999', such as '8'")
]
Temperature = Annotated[
    str,
    Field(max_length=8),
    Matches(
        r"^(model|[01](\.[0-9]{1,3})?|2(\.0{1,3})?)$",
        "be a decimal string from '0' to '2', such as '0.7', or model: requests then set none, and the server "
        "samples by its own default",
    ),
]
_TIME = r"[0-9]{1,5}(h|m|s|ms)"
_DURATION = Matches(
    rf"^({_TIME}){{0,3}}0{{0,4}}[1-9][0-9]{{0,4}}(h|m|s|ms)({_TIME}){{0,3}}$",
    "be a duration above zero in h, m, s and ms, such as 30m, 1h30m or 500ms",
)
"""The Gateway API's form of a duration (GEP-2257)."""
Duration = Annotated[
    timedelta,
    Text(form=_DURATION, longest=28, read=duration, write=lambda time: duration_text(time.total_seconds())),
]
Seconds = Annotated[
    float, Text(form=_DURATION, longest=28, read=lambda text: duration(text).total_seconds(), write=duration_text)
]
"""A duration in seconds."""
Quantity = Annotated[
    str,
    Field(max_length=20),
    Matches(
        r"^(0\.[0-9]*[1-9]|[1-9][0-9]*(\.[0-9]+)?)(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)$",
        "be a quantity such as 400Gi, with its unit",
    ),
]

Argument = Annotated[str, Field(min_length=1, max_length=2048)]
Arguments = Annotated[tuple[Argument, ...], Field(max_length=64)]
Labels = Annotated[
    dict[
        str,
        Annotated[
            str,
            Field(max_length=63),
            Matches(r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", "be a label's value: letters, digits, '-_.'"),
        ],
    ],
    Field(max_length=16),
    KeysLike(LABEL_KEY, "be a label key such as example.com/team"),
]
DeviceSelector = Annotated[
    str,
    Field(max_length=2048),
    Matches(
        r"^[^\r\n]*\bdevice\.[^\r\n]*$",
        "be a line of CEL about device, such as device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H200'",
    ),
]
Architecture = Annotated[
    str, Field(max_length=100), Matches(r"^[A-Za-z][A-Za-z0-9_]*$", "be a class name such as Qwen3NextForCausalLM")
]

Algorithm = Annotated[
    str,
    Field(max_length=20),
    Matches(
        f"^({'|'.join(ALGORITHMS)})$",
        f"be one of {', '.join(ALGORITHMS)}; {CUSTOM} is any other of the engine's, by its name; no engine here "
        "serves Medusa or Lookahead, the nearest are EAGLE3 (a trained head) and NGRAM (no head)",
    ),
]
AlgorithmName = Annotated[
    str,
    Field(max_length=60),
    Matches(r"^[A-Za-z][A-Za-z0-9_.]*$", "be the engine's own name of the algorithm, such as UNO or suffix"),
]
