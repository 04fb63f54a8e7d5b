"""The request of a prefetch: everything its container needs, in one environment variable."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import BUCKETS, Scheme, Source
from paceline.core.names import MODELS
from paceline.core.text import error_text

FETCH_VARIABLE = "PACELINE_FETCH"
"""The variable of the prefetch's container with `FetchRequest.to_json()`."""
FETCHABLE: Mapping[str, tuple[frozenset[Scheme], str]] = {
    "models": (
        BUCKETS | {Scheme.HUB, Scheme.CLAIM},
        "not a source that can be fetched; write hf://OWNER/NAME, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or "
        "pvc://CLAIM/PATH",
    ),
    "datasets": (
        frozenset({Scheme.HUB_DATASET}),
        "not a file that can be fetched; write hf://datasets/OWNER/NAME/PATH",
    ),
}
"""The allowed schemes of each list, and the refusal of other addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A model's repository or prefix of a bucket, a model that is on the volume already, or one file of a dataset.
    `commit` is the already resolved revision; "" if it was not resolved."""

    source: Source
    revision: str = "main"
    commit: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the model is on the volume already, so that nothing is downloaded."""
        return self.source.scheme is Scheme.CLAIM

    @property
    def is_dataset(self) -> bool:
        return self.source.scheme is Scheme.HUB_DATASET

    @property
    def kind(self) -> str:
        """The hub's type: model and dataset repositories have separate names."""
        return "dataset" if self.is_dataset else "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """`models` has the target first; `path` is the mount path of the cache volume.

    In each repository the prefetch keeps `keep_revisions` on the volume, and the commits `in_use`, which servers or
    kept revisions still name. `user` is the requesting deployment, as NAMESPACE/NAME. With `trust_remote_code` Python
    files are downloaded, too.
    """

    models: tuple[Artifact, ...]
    datasets: tuple[Artifact, ...] = ()
    path: str = MODELS
    keep_revisions: int = 2
    in_use: tuple[str, ...] = ()
    user: str = ""
    trust_remote_code: bool = False

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """Models, then datasets."""
        return (*self.models, *self.datasets)

    def to_json(self) -> str:
        """Field names must not change: during an upgrade the pod may have another release than the operator."""
        request = {
            "models": list(map(_written, self.models)),
            **({"datasets": list(map(_written, self.datasets))} if self.datasets else {}),
            "path": self.path,
            "keepRevisions": self.keep_revisions,
            "inUse": list(self.in_use),
            "user": self.user,
            "trustRemoteCode": self.trust_remote_code,
        }
        return json.dumps(request, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "FetchRequest":
        """The inverse; ignores fields of other releases. Raises ValueError with a one-sentence message."""
        try:
            value = {"datasets": (), **json.loads(text)}
            entries = {kind: [_entry(entry) for entry in value[kind]] for kind in FETCHABLE}
            options: dict[str, Any] = {
                "path": str(value.get("path", MODELS)),
                "keep_revisions": max(1, value.get("keepRevisions", 2)),
                "in_use": tuple(value.get("inUse", ())),
                "user": str(value.get("user", "")),
                "trust_remote_code": bool(value.get("trustRemoteCode", False)),
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{FETCH_VARIABLE} is not a request: {error_text(error)}") from error
        models, datasets = (tuple(_artifact(kind, *entry) for entry in entries[kind]) for kind in FETCHABLE)
        return cls(models=models, datasets=datasets, **options)


def _entry(value: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(value["source"]), str(value.get("revision", "main")), str(value.get("commit", ""))


def _artifact(kind: str, address: str, revision: str, commit: str) -> Artifact:
    schemes, refusal = FETCHABLE[kind]
    try:
        source = Source.parse(address)
    except ValueError as error:
        raise ValueError(f"{address:.300}: {refusal}") from error
    if source.scheme not in schemes:
        raise ValueError(f"{address:.300}: {refusal}")
    return Artifact(source=source, revision=revision, commit=commit)


def _written(artifact: Artifact) -> dict[str, str]:
    commit = {"commit": artifact.commit} if artifact.commit else {}
    return {"source": str(artifact.source), "revision": artifact.revision, **commit}
