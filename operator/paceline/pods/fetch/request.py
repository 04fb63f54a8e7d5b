"""What is asked of a fetch."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# The hub's own rule for names is laxer; this one also keeps them safe as paths.
SOURCE = re.compile(r"hf://([A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)", re.ASCII)
DATASET = re.compile(
    r"hf://datasets/([A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)/([A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*)", re.ASCII
)
LOCAL_SOURCE = re.compile(r"pvc://[a-z0-9][a-z0-9.-]*/([A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*)*)", re.ASCII)

ALLOWED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "tokenizer*")
"""No pickled weights: they can run code, and every engine reads safetensors."""
NEVER = (".bin", ".ckpt", ".dll", ".exe", ".gz", ".h5", ".joblib", ".msgpack", ".npy", ".npz", ".pickle", ".pkl", ".pt",
         ".pth", ".pyc", ".sh", ".so", ".tar", ".whl", ".zip")  # fmt: skip
"""Endings of what may run code as it is read, whatever the rest of its name."""
CODE = "*.py"


class FetchError(Exception):
    """Its text is one sentence for a person. `final`: trying again without a change will not help."""

    def __init__(self, sentence: str, *, final: bool) -> None:
        super().__init__(sentence)
        self.final = final


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`repository` is OWNER/NAME; empty for what is on the volume already, at `place` below its root. Of a dataset
    one `file` is wanted. `commit` is what the revision was resolved to before, if it was."""

    source: str
    revision: str
    repository: str = ""
    place: str = ""
    file: str = ""
    commit: str = ""

    @property
    def kind(self) -> str:
        """As the hub calls it: every kind has repositories of its own."""
        return "dataset" if self.file else "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    wishes: tuple[Wish, ...]
    """Models, then datasets."""
    path: Path
    keep_revisions: int
    patterns: tuple[str, ...]
    in_use: frozenset[str]
    user: str
    """Who asks, to everyone who shares the volume."""

    def wants(self, path: str) -> bool:
        """A file of a model's repository. `tokenizer*` is also what a tokenizer.py and a tokenizer.pkl are called."""
        last = path.lower()
        if last.endswith(NEVER) or (last.endswith(".py") and CODE not in self.patterns):
            return False
        return any(fnmatchcase(path, pattern) for pattern in self.patterns)


def read_request(text: str) -> Request:
    """Raises FetchError."""
    try:
        value = json.loads(text)
        trust = value.get("trustRemoteCode", False)
        return Request(
            wishes=(*map(_model, value["models"]), *map(_dataset, value.get("datasets", ()))),
            path=Path(value.get("path", "/models")),
            keep_revisions=max(1, value.get("keepRevisions", 2)),
            patterns=(*ALLOWED, CODE) if trust else ALLOWED,
            in_use=frozenset(value.get("inUse", ())),
            user=str(value.get("user", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FetchError(f"PACELINE_FETCH is not a request: {error!r}", final=True) from error


def _model(asked: Mapping[str, str]) -> Wish:
    source = asked["source"]
    if found := LOCAL_SOURCE.fullmatch(source):
        return Wish(**_named(asked), place=found[1])
    if found := SOURCE.fullmatch(source):
        return Wish(**_named(asked), repository=found[1])
    sentence = f"{source}: not a source that can be fetched; write hf://OWNER/NAME or pvc://CLAIM/PATH"
    raise FetchError(sentence, final=True)


def _dataset(asked: Mapping[str, str]) -> Wish:
    source = asked["source"]
    if found := DATASET.fullmatch(source):
        return Wish(**_named(asked), repository=found[1], file=found[2])
    sentence = f"{source}: not a file that can be fetched; write hf://datasets/OWNER/NAME/PATH"
    raise FetchError(sentence, final=True)


def _named(asked: Mapping[str, str]) -> dict[str, str]:
    return {
        "source": asked["source"],
        "revision": asked.get("revision", "main"),
        "commit": asked.get("commit", ""),
    }
