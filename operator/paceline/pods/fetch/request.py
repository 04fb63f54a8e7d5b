"""The request of this prefetch, and which of a repository's files it covers."""

from fnmatch import fnmatchcase

from paceline.fetching import FetchFailure, FetchRequest
from paceline.fetching.failure import ModelPart

ALLOWED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "tokenizer*")
"""Files to download. Pickled weights are left out: they can run code, and every engine reads safetensors."""
_NEVER = (".bin", ".ckpt", ".dll", ".exe", ".gz", ".h5", ".joblib", ".msgpack", ".npy", ".npz", ".pickle", ".pkl",
          ".pt", ".pth", ".pyc", ".sh", ".so", ".tar", ".whl", ".zip")  # fmt: skip
"""Suffixes of files that may run code when they are read, whatever the rest of the name."""
CODE = "*.py"


class FetchError(Exception):
    """The message is one sentence for a person, which begins with the failed `source`, if there is one. `part`: the
    field to change. `final`: trying again without a change will not help."""

    def __init__(self, sentence: str, *, final: bool, source: object = "", part: ModelPart = "source") -> None:
        super().__init__(f"{source}: {sentence}" if source else sentence)
        self.final = final
        self.failure = FetchFailure(sentence=str(self), source=str(source), part=part)


def read_request(text: str) -> FetchRequest:
    """Raises FetchError."""
    try:
        return FetchRequest.from_json(text)
    except ValueError as error:
        raise FetchError(str(error), final=True) from error


def patterns(request: FetchRequest) -> tuple[str, ...]:
    """Patterns of a model's files that are downloaded."""
    return (*ALLOWED, CODE) if request.trust_remote_code else ALLOWED


def covers(request: FetchRequest, path: str) -> bool:
    """Whether a file of a model's repository is downloaded. `tokenizer*` also matches tokenizer.py and tokenizer.pkl,
    which are not tokenizers' data."""
    name = path.lower()
    if name.endswith(_NEVER) or (name.endswith(".py") and not request.trust_remote_code):
        return False
    return any(fnmatchcase(path, pattern) for pattern in patterns(request))
