"""Finding a model's config.json the way the server would, and what of it matters here."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
MARKER = "paceline_emulated_acceptance"
"""Key of a head's config.json; `none`: nothing that this head proposes is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """`path` as it was asked for, `config` as it lies there (a text part is looked into,
    and the layer of a speculator)."""

    path: str
    config: dict[str, Any] = field(repr=False)

    @property
    def text(self) -> dict[str, Any]:
        nested = self.config.get("text_config", self.config.get("transformer_layer_config"))
        return nested if isinstance(nested, dict) else self.config

    @property
    def verifier(self) -> str | None:
        """Of one in the speculators format: the model that it was made for."""
        said = self.config.get("speculators_config")
        return str(said["verifier"]["name_or_path"]) if said else None

    @property
    def architectures(self) -> list[str]:
        return list(self.config.get("architectures") or [])

    @property
    def context(self) -> int:
        """Tokens; 2048 where the configuration does not say, as in the real server."""
        return next((int(self.text[key]) for key in CONTEXT_KEYS if self.text.get(key) is not None), 2048)


def load(path: str, revision: str | None, *, cache: Path, offline: bool) -> Model:
    """The model in a directory, or a repository already in the hub's cache. Nothing is ever fetched.

    Raises OSError with the hub client's words otherwise.
    """
    directory = Path(path) if Path(path).is_dir() else _cached(path, revision or "main", cache)
    if directory is None:
        if REPOSITORY.fullmatch(path):
            reason = "offline mode is enabled" if offline else "an emulated server never downloads"
            raise OSError(
                f"We couldn't connect to 'https://huggingface.co' to load the files ({reason}), and couldn't find them "
                f"in the cached files. Check your internet connection or see how to run the library in offline mode. "
                f"Repository: {path}"
            )
        raise OSError(
            f"{path} is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"
        )
    try:
        config = json.loads((directory / "config.json").read_text())
        if not isinstance(config, dict):
            raise ValueError
    except FileNotFoundError:
        raise OSError(f"{path} does not appear to have a file named config.json.") from None
    except ValueError:
        raise OSError(
            f"It looks like the config file at '{directory / 'config.json'}' is not a valid JSON file."
        ) from None
    return Model(path=path, config=config)


def accepts_nothing(head: Model, target: Model) -> bool:
    """Whether the head was made for another target, or says of itself that it is worth nothing."""
    fits = head.text.get("target_hidden_size") or head.text.get("hidden_size")
    return head.config.get(MARKER) == "none" or fits != target.text.get("hidden_size")


def _cached(repository: str, revision: str, cache: Path) -> Path | None:
    home = cache / f"models--{repository.replace('/', '--')}"
    ref = home / "refs" / revision
    commit = ref.read_text().strip() if ref.is_file() else revision
    snapshot = home / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None
