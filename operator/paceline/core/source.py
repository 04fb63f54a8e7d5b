"""The address of a model or of prompts: where it is stored, and its path there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache


class Scheme(StrEnum):
    """The kind of storage, by the prefix of the address."""

    HUB = "hf://"
    HUB_DATASET = "hf://datasets/"
    S3 = "s3://"
    GCS = "gs://"
    CLAIM = "pvc://"
    IMAGE = "oci://"
    CONFIG_MAP = "configMap://"
    BUILTIN = "builtin://"


BUCKETS = frozenset({Scheme.S3, Scheme.GCS})
"""Object stores: a model is the objects below a prefix of a bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`name` is the repository (OWNER/NAME), the bucket, the claim, the ConfigMap, the image with its digest or the
    built-in set; `path` is a model's directory or prefix, a dataset's file or a key in it; "" for an entire repository
    or image, and for a built-in set."""

    scheme: Scheme
    name: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}{self.name}{'/' if self.path else ''}{self.path}"

    @property
    def digest(self) -> str:
        """An image's digest: 64 hex digits, which serve as its commit; "" for all others."""
        return self.name.partition("@sha256:")[2] if self.scheme is Scheme.IMAGE else ""

    @property
    def in_bucket(self) -> bool:
        return self.scheme in BUCKETS

    @property
    def cache_folder(self) -> str:
        """Name of the repository's folder in the hub client's cache. A bucket's has a "+", which is in no name of the
        hub, of a bucket and of a path: s3://models/heads/a is models--s3+models+heads+a."""
        if self.in_bucket:
            return f"models--{str(self).replace('://', '+').replace('/', '+')}"
        kind = "datasets" if self.scheme is Scheme.HUB_DATASET else "models"
        return f"{kind}--{self.name.replace('/', '--')}"

    @classmethod
    def parse(cls, text: str) -> "Source":
        """The inverse of str(). Raises ValueError for any other text: names and paths become parts of file names."""
        return _parsed(text)


_REPOSITORY = r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)"
_PATH = r"(?P<path>[A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*)"
_OBJECT = r"(?P<name>[a-z0-9][a-z0-9.-]*)"
BUCKET = r"[a-z0-9][a-z0-9._-]*"
"""S3 allows lower-case letters, digits, "." and "-", Cloud Storage also "_"; in RE2 and in Python."""
IMAGE = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?(?:/[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)+@sha256:[0-9a-f]{64}"
"""An image as registry, repository and digest, in RE2 and in Python."""
_PATTERNS: Mapping[Scheme, str] = {
    Scheme.HUB_DATASET: rf"{_REPOSITORY}/{_PATH}",
    Scheme.HUB: _REPOSITORY,
    **dict.fromkeys((Scheme.S3, Scheme.GCS), rf"(?P<name>{BUCKET})/{_PATH}"),
    Scheme.CLAIM: rf"{_OBJECT}/{_PATH}",
    Scheme.IMAGE: rf"(?P<name>{IMAGE})(?:/{_PATH})?",
    Scheme.CONFIG_MAP: rf"{_OBJECT}/(?P<path>[-\w][-.\w]*)",
    Scheme.BUILTIN: _OBJECT,
}
"""Datasets of the hub come first, because a model's repository could be called datasets/NAME."""


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Source:
    for scheme, pattern in _PATTERNS.items():
        if parts := re.fullmatch(f"{scheme}{pattern}", text, re.ASCII):
            return Source(scheme=scheme, **parts.groupdict(""))
    raise ValueError(f"{text!r:.300} is not an address: write {', '.join(FORMS.values())}")


HUB = Scheme.HUB_DATASET.value

FORMS: Mapping[Scheme, str] = {
    Scheme.HUB: "hf://OWNER/NAME",
    Scheme.HUB_DATASET: "hf://datasets/OWNER/NAME/PATH",
    Scheme.S3: "s3://BUCKET/PREFIX",
    Scheme.GCS: "gs://BUCKET/PREFIX",
    Scheme.CLAIM: "pvc://CLAIM/PATH",
    Scheme.IMAGE: "oci://REGISTRY/REPOSITORY@sha256:DIGEST",
    Scheme.CONFIG_MAP: "configMap://NAME/KEY",
    Scheme.BUILTIN: "builtin://NAME",
}
"""The written form of an address."""
