"""What serves a model, and on what."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import Field

from paceline import core
from paceline.api.compatibility import ADMIN_KEY_RULE, EngineName, engine_of, is_of
from paceline.api.model import SchemaModel, plain
from paceline.api.pod import Env, EnvName, EnvVar
from paceline.api.rules import DeskRule, Rule, Violation
from paceline.core import SecretKey
from paceline.core.server import GPU, GPU_LABEL
from paceline.core.types import Architecture, Arguments, Matches, Unique
from paceline.engines import ENGINES, TPU
from paceline.engines.images import PUBLISHED, RELEASE, engine_and_version, named

TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
MOST_TEMPLATE_BYTES = 65536
SMALL_TEMPLATE = f"podTemplate must be at most {MOST_TEMPLATE_BYTES} bytes of JSON"


_PUBLISHED = " or ".join(PUBLISHED.values())
_RELEASED = f"(^|/)({'|'.join(PUBLISHED.values())}):{RELEASE}(@.*)?$"


def _vast(engine: "EngineSpec") -> Iterator[Violation]:
    if (size := len(json.dumps(engine.pod_template))) > MOST_TEMPLATE_BYTES:
        yield ".podTemplate", f"{SMALL_TEMPLATE}; got {size}"


Version = Annotated[
    str, Field(max_length=40), Matches(r"^[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$", "be a version such as '0.5.23'")
]
Image = Annotated[str, Field(max_length=500), Matches(r"^[A-Za-z0-9][^\s]*$", "be an image reference")]


def _of_the_image(unless: str = "") -> tuple[Rule, ...]:
    """Rules of a type with `type`, `version` and `image`; `unless`: CEL that is true without an image, and " || "."""
    return (
        Rule(
            cel=f"{unless}has(self.version) || self.image.matches(r'{_RELEASED}')",
            message=f"version must be set unless the image is {_PUBLISHED} with a release as its tag",
            field=".version",
        ),
        *(
            Rule(
                cel=f"{unless}!has(self.type) || self.type == '{name}' || !{is_of('self', own)}",
                message=f"type must be {name}, or be left out, if the image is {own}; got {{self.type}}",
                field=".type",
            )
            for name, own in PUBLISHED.items()
        ),
    )


class EngineChange(SchemaModel):
    """How an arm's engine differs from the one that the arms share. Absent fields are the same."""

    rules = (
        Rule(
            cel="has(self.image) || !(has(self.type) || has(self.version))",
            message="image must be set if type or version is: they say what is in it",
            field=".image",
        ),
        *_of_the_image("!has(self.image) || "),
        Rule(
            cel="has(self.image) || has(self.args) || (has(self.env) && self.env.size() > 0) || has(self.unsetEnv)"
            " || has(self.tensorParallelSize)",
            message="engine must have an image, args, env, unsetEnv or tensorParallelSize: without them it is the same "
            "engine",
        ),
    )

    type: Annotated[str, EngineName()] | None = None
    """Engine in `image`; if absent, known from a published image's name, else the same."""
    version: Version | None = None
    """Version of the engine in `image`; if absent, the tag of a published image."""
    image: Image | None = None
    """Another image of this engine or of another one."""
    args: Arguments | None = None
    """Replaces the arguments as a whole. If absent, an engine of another type has none."""
    env: Env | None = None
    """Variables to add, or to replace by name."""
    unset_env: Annotated[tuple[EnvName, ...], Field(min_length=1, max_length=64), Unique()] | None = None
    """Variables of the shared engine to leave out, by name."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """Number of the accelerators over which the model is split; if absent, as on the other arms."""

    def of(self, engine: core.Engine) -> core.Engine:
        """The arm's whole engine."""
        type, version = engine_and_version(self.type, self.version, self.image) if self.image else ("", "")
        type = type or engine.type
        args, same = self.args, type == engine.type
        kept = (one for one in engine.env if one["name"] not in (self.unset_env or ()))
        replaced = {str(one["name"]): one for one in (*kept, *plain(self.env or ()))}
        return replace(
            engine,
            type=type,
            version=version or engine.version,
            image=self.image or engine.image,
            # They are of a fork: a published image has its release's hooks alone.
            eagle3_targets=() if named(self.image or "") else engine.eagle3_targets,
            args=args if args is not None else engine.args if same else (),
            tensor_parallel_size=self.tensor_parallel_size or engine.tensor_parallel_size,
            env=tuple(replaced.values()),
            admin_key=engine.admin_key if same or ENGINES[type].capabilities.admin_key else None,
        )

    @classmethod
    def between(cls, engine: core.Engine, other: core.Engine) -> Self:
        """What makes `other` of `engine`."""
        moved = other.image != engine.image or other.version != engine.version or other.type != engine.type
        env = tuple(EnvVar.model_validate(one) for one in other.env if one not in engine.env)
        names = {one["name"] for one in other.env}
        unset = tuple(str(one["name"]) for one in engine.env if one["name"] not in names)
        same = not moved and other.args == engine.args
        size = other.tensor_parallel_size or None
        return cls(
            type=other.type if moved else None,
            version=other.version if moved else None,
            image=other.image if moved else None,
            args=None if same and (env or unset or size) else other.args,
            tensor_parallel_size=size,
            env=env or None,
            unset_env=unset or None,
        )


class EngineSpec(SchemaModel):
    """The inference engine and the arguments that every arm starts with."""

    rules = (
        ADMIN_KEY_RULE,
        Rule(
            cel=f"{engine_of('self')} != ''",
            message=f"type must be set unless the image is {_PUBLISHED}",
            field=".type",
        ),
        *_of_the_image(),
        DeskRule(message=SMALL_TEMPLATE, field=".podTemplate", broken=_vast),
    )

    type: Annotated[str, EngineName()] | None = None
    """Engine in the image; if absent, known from a published image's name."""
    version: Version | None = None
    """Version of the engine in the image; it selects the flags that are emitted and checked. If absent, the tag of a
    published image."""
    image: Image
    """Any image of that engine, forks included; the digest that ran is recorded."""
    args: Arguments = ()
    """Additional server arguments, the same for every arm."""
    trust_remote_code: bool = False
    """Lets the server run code from the model's repository."""
    eagle3_targets: Annotated[tuple[Architecture, ...], Field(max_length=16), Unique()] | None = None
    """Target architectures for which this image (a fork) adds an EAGLE3 hook that its version lacks."""
    env: Env = ()
    """Environment of the servers."""
    api_key_secret_ref: SecretKey | None = None
    """Key that clients must send; the operator never reads it."""
    admin_key_secret_ref: SecretKey | None = None
    """Administration key of the server, if the engine has one; the benchmark uses it to flush caches. The operator
    never reads it."""
    pod_template: dict[str, Any] | None = None
    """Overlay for the servers' pod template: maps merge, lists of named objects merge by name (the container is
    `server`), all else is replaced. `paceline validate` refuses fields that Paceline sets itself."""

    def effective(self) -> Self:
        type, version = engine_and_version(self.type, self.version, self.image)
        return self.model_copy(update={"type": type, "version": version})

    def whole(self) -> core.Engine:
        """Every default filled in."""
        type, version = engine_and_version(self.type, self.version, self.image)
        return core.Engine(
            type=type or "",
            version=version or "",
            image=self.image,
            args=self.args,
            trust_remote_code=self.trust_remote_code,
            env=plain(self.env),
            eagle3_targets=self.eagle3_targets or (),
            api_key=self.api_key_secret_ref,
            admin_key=self.admin_key_secret_ref,
            pod_template=self.pod_template or {},
        )


TPU_NODES = f"productLabel must be a label of TPU nodes if resourceName is {TPU}: {TPU_LABEL} on GKE"


_ACCELERATORS = "self.count * self.nodes"
"""CEL: accelerators of a server."""


RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    core.Accelerator: (
        Rule(
            cel=f"self.resourceName != '{TPU}' || self.productLabel != '{GPU_LABEL}'",
            message=TPU_NODES,
            field=".productLabel",
        ),
        Rule(
            cel=f"!has(self.deviceClassName) || self.resourceName == '{GPU}'",
            message="resourceName must be left out if deviceClassName is set: a pod gets its accelerators by one of "
            "the two; got {self.resourceName}",
            field=".resourceName",
        ),
        Rule(
            cel="!has(self.deviceSelectors) || has(self.deviceClassName)",
            message="deviceSelectors must be left out without deviceClassName: they select among its devices",
            field=".deviceSelectors",
        ),
        Rule(
            cel=f"!has(self.tensorParallelSize) || self.tensorParallelSize <= {_ACCELERATORS}",
            message=f"tensorParallelSize must be at most count x nodes = {{{_ACCELERATORS}}}; "
            "got {self.tensorParallelSize}",
            field=".tensorParallelSize",
        ),
    ),
}
