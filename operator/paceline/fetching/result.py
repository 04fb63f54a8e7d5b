"""The result of a prefetch, and its termination message: the pod writes it, the planner reads it."""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.core import ModelFacts
from paceline.core.names import snapshot_path
from paceline.fetching.facts import WHOLE_COMMIT, is_number, known_fields, read_facts, write_facts

_VERSION = 4
"""Version of the message, which is also the marker on the volume. A new fact that rules need raises it: an older
prefetch lacks that fact, and a missing fact would look like "nothing wrong"."""
LARGEST_MESSAGE = 2048
"""Bytes of a termination message that the kubelet keeps in a pod of six containers: it keeps 12 KiB in all, in equal
parts, and a mesh or a vault may add two containers each."""
LARGEST_JSON = 1 << 18
"""Maximum bytes of an unpacked message. With twenty models it has some 20,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedModel:
    """A repository on the cache volume: `bytes` of all requested files, `path` of the snapshot. For a dataset, the one
    file."""

    source: str
    revision: str
    commit: str
    bytes: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """`facts` by source of a model; a source may be missing."""

    models: tuple[FetchedModel, ...]
    facts: Mapping[str, ModelFacts]
    datasets: tuple[FetchedModel, ...] = ()

    def to_message(self) -> str:
        """JSON of at most 2048 bytes, packed if longer. If it still does not fit, facts are left out from the last
        model on, and preflight reports them as unknown.

        Raises ValueError if the commits do not fit with the facts of the first model, the target's (some twenty models
        and datasets): nothing could be compared then.
        """
        known = [(model.source, self.facts[model.source]) for model in self.models if model.source in self.facts]
        commits: dict[str, Any] = {"models": list(map(_written, self.models))}
        if self.datasets:
            commits["datasets"] = list(map(_written, self.datasets))
        for count in range(len(known), min(len(known), 1) - 1, -1):
            facts = {source: write_facts(facts) for source, facts in known[:count]}
            whole = _json({"version": _VERSION, **commits, "facts": facts})
            for text in (whole, _json({"packed": _pack(whole)})):
                if len(text) <= LARGEST_MESSAGE:  # json.dumps writes ASCII: characters are bytes
                    return text
        what = f"{len(self.models)} models" + (f" and {len(self.datasets)} datasets" if self.datasets else "")
        raise ValueError(f"{what} do not fit into a termination message of {LARGEST_MESSAGE} bytes")

    @classmethod
    def from_message(cls, text: str) -> "FetchResult":
        """The inverse. Raises ValueError for anything else: a failed fetch ends with a sentence, not with JSON.

        Additions of a newer release are ignored.
        """
        try:
            value = json.loads(text)
            value = json.loads(_unpack(value["packed"])) if "packed" in value else value
            if value["version"] != _VERSION:
                raise ValueError(f"version {value['version']}, not {_VERSION}")
            return cls(
                models=tuple(map(_read, value["models"])),
                facts={source: read_facts(facts) for source, facts in value["facts"].items()},
                datasets=tuple(map(_read, value.get("datasets", ()))),
            )
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError, zlib.error) as error:
            raise ValueError(f"not the message of a finished fetch: {error}") from error


def _written(model: FetchedModel) -> dict[str, Any]:
    """Omits a path that follows from the commit: it is the longest part."""
    value = asdict(model)
    if model.path == snapshot_path(model.source, model.commit):
        del value["path"]
    return value


def _read(value: Mapping[str, Any]) -> FetchedModel:
    known = known_fields(FetchedModel, value)
    if not isinstance(known["source"], str) or not isinstance(known["revision"], str) or not is_number(known["bytes"]):
        raise TypeError(f"a model or dataset of {known['source']!r:.80}")
    if not WHOLE_COMMIT.fullmatch(known["commit"]):  # it becomes part of a path, and of a server's argv
        raise ValueError(f"{known['commit']!r:.80} is not a commit")
    return FetchedModel(**{"path": snapshot_path(known["source"], known["commit"]), **known})


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _pack(text: str) -> str:
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode()


def _unpack(text: str) -> bytes:
    return zlib.decompressobj().decompress(base64.b85decode(text), LARGEST_JSON)
