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
    CLAIM = "pvc://"
    IMAGE = "oci://"
    CONFIG_MAP = "configMap://"
    BUILTIN = "builtin://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`name` is the repository (OWNER/NAME), the claim, the ConfigMap, the image with its digest or the built-in set;
    `path` is a model's directory, a dataset's file or a key in it; "" for an entire repository or image, and for a
    built-in set."""

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
    def cache_folder(self) -> str:
        """Name of the repository's folder in the hub client's cache."""
        kind = "datasets" if self.scheme is Scheme.HUB_DATASET else "models"
        return f"{kind}--{self.name.replace('/', '--')}"

    @classmethod
    def parse(cls, text: str) -> "Source":
        """The inverse of str(). Raises ValueError for any other text: names and paths become parts of file names."""
        return _parsed(text)


_REPOSITORY = r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)"
_PATH = r"(?P<path>[A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*)"
_OBJECT = r"(?P<name>[a-z0-9][a-z0-9.-]*)"
IMAGE = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?(?:/[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?)+@sha256:[0-9a-f]{64}"
"""An image as registry, repository and digest, in RE2 and in Python."""
_PATTERNS: Mapping[Scheme, str] = {
    Scheme.HUB_DATASET: rf"{_REPOSITORY}/{_PATH}",
    Scheme.HUB: _REPOSITORY,
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
    Scheme.CLAIM: "pvc://CLAIM/PATH",
    Scheme.IMAGE: "oci://REGISTRY/REPOSITORY@sha256:DIGEST",
    Scheme.CONFIG_MAP: "configMap://NAME/KEY",
    Scheme.BUILTIN: "builtin://NAME",
}
"""The written form of an address."""
