"""Parts of pods, in both kinds: environment, keys of Secrets, labels."""

from typing import Annotated, Literal

from pydantic import Field

from paceline.api.model import SchemaModel
from paceline.api.rules import Rule, count_of
from paceline.core.names import QUEUE_LABEL
from paceline.core.server import TOPOLOGY_LABEL
from paceline.core.types import LabelKey, Matches, ObjectName, SecretsKey, Unique


class KeyRef(SchemaModel):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName
    """Name of the object."""
    key: SecretsKey
    """Key in it."""
    optional: bool | None = None
    """Whether it may be absent."""


class FieldRef(SchemaModel):
    """A field of the pod."""

    api_version: Annotated[str, Field(max_length=20)] | None = None
    """Version of the schema; v1 if absent."""
    field_path: Annotated[str, Field(max_length=400)]
    """Path of the field, such as status.podIP."""


class ResourceFieldRef(SchemaModel):
    """A container's resources."""

    container_name: Annotated[str, Field(max_length=63)] | None = None
    """Name of the container; the variable's own container if absent."""
    resource: Annotated[str, Field(max_length=253)]
    """Such as limits.memory."""
    divisor: Annotated[str, Field(max_length=20)] | None = None
    """Unit of the value, as a quantity in quotes; 1 if absent."""


class FileKeyRef(SchemaModel):
    """A key of a file that an init container wrote."""

    volume_name: Annotated[str, Field(max_length=63)]
    """Name of the volume."""
    path: Annotated[str, Field(max_length=500)]
    """Path in the volume."""
    key: Annotated[str, Field(max_length=253)]
    """Key in it."""
    optional: bool | None = None
    """Whether it may be absent."""


ENV_SOURCES = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef")


class EnvVarSource(SchemaModel):
    """A core/v1 EnvVarSource."""

    rules = (
        Rule(
            cel=f"{count_of(ENV_SOURCES)} == 1",
            message=f"valueFrom must have exactly one of {', '.join(ENV_SOURCES)}; got {{{count_of(ENV_SOURCES)}}}",
        ),
    )

    secret_key_ref: KeyRef | None = None
    """A key of a Secret."""
    config_map_key_ref: KeyRef | None = None
    """A key of a ConfigMap."""
    field_ref: FieldRef | None = None
    """A field of the pod."""
    resource_field_ref: ResourceFieldRef | None = None
    """A container's resources."""
    file_key_ref: FileKeyRef | None = None
    """A key of a file."""


EnvName = Annotated[str, Field(max_length=253), Matches(r"^[A-Za-z_.-][A-Za-z0-9_.-]*$", "be a variable's name")]


class EnvVar(SchemaModel):
    """A core/v1 EnvVar."""

    rules = (
        Rule(
            cel="!(has(self.value) && has(self.valueFrom))",
            message="valueFrom must be left out if value is set",
            field=".valueFrom",
        ),
    )

    name: EnvName
    """Name of the variable."""
    value: Annotated[str, Field(max_length=4096)] | None = None
    """Its value; write secrets as a reference, in valueFrom."""
    value_from: EnvVarSource | None = None
    """Source of its value, for example a secretKeyRef."""


Env = Annotated[tuple[EnvVar, ...], Field(max_length=64), Unique(("name",))]


class TokenKey(SchemaModel):
    """A key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: SecretsKey = "token"
    """Key in it."""


class Toleration(SchemaModel):
    """A core/v1 Toleration."""

    rules = (
        Rule(
            cel="has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            message="key must be set unless operator is Exists, which then tolerates every taint",
            field=".key",
        ),
        Rule(
            cel="!has(self.value) || !has(self.operator) || self.operator != 'Exists'",
            message="value must be left out if operator is Exists",
            field=".value",
        ),
        Rule(
            cel="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            message="tolerationSeconds must be left out unless effect is NoExecute",
            field=".tolerationSeconds",
        ),
    )

    key: LabelKey | None = None
    """Key of the taint; any key if absent."""
    operator: Literal["Exists", "Equal"] | None = None
    """Exists: any value of the taint. Equal (the default): this value."""
    value: Annotated[str, Field(max_length=63)] | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; any if absent."""
    toleration_seconds: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    """Seconds that a pod stays under the taint; for ever if absent."""


Tolerations = Annotated[tuple[Toleration, ...], Field(max_length=16)]
NOT_OF_THE_ACCELERATOR = Rule(
    each={"k": "self.nodeSelector"},
    cel="(k != self.accelerator.productLabel || has(self.accelerator.deviceSelectors))"
    f" && (k != '{TOPOLOGY_LABEL}' || !has(self.accelerator.topology))",
    message="nodeSelector must not have the labels of spec.accelerator: write product and topology there; got {k}",
)
"""Rule of a spec with `nodeSelector`."""

_OUR_LABELS = "podLabels must not have paceline.dev/ or app.kubernetes.io/managed-by, which are Paceline's"
NO_LABELS_OF_OURS = Rule(
    each={"k": "self.podLabels"},
    cel="!k.startsWith('paceline.dev/') && k != 'app.kubernetes.io/managed-by'",
    message=_OUR_LABELS,
)
"""Rule of a model with `podLabels`: a round that looks like a server would get traffic."""
ONE_QUEUE = Rule(
    cel=f"!has(self.queueName) || !has(self.podLabels) || !('{QUEUE_LABEL}' in self.podLabels)",
    message=f"podLabels must not have {QUEUE_LABEL} if queueName is set: it sets this label on the rounds' Jobs",
    field=".podLabels",
)
"""Rule of a model with `podLabels` and `queueName`."""
