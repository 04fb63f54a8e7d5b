"""Splits the container's variables: for the server, for the prefetch, and those replaced by other fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.cli.importing.hidden import written_out
from paceline.cli.importing.secret import without_secret_value
from paceline.engines import ENGINES
from paceline.engines.importing import Note

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
FETCHES = ("HF_ENDPOINT", "HF_HUB_DISABLE_XET", *_PROXIES, *map(str.lower, _PROXIES))
"""Variables that the prefetch needs too, because it does the downloading."""
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
KEYS = {row.importing.key_variable: name for name, row in ENGINES.items() if row.importing.key_variable}
"""Variable → the engine that reads its API key from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    env: tuple[Mapping[str, Any], ...]
    fetch: tuple[Mapping[str, Any], ...]
    token: Mapping[str, str] | None
    api_key: Mapping[str, str] | None
    notes: tuple[Note, ...]


def split_environment(engine: str, variables: Sequence[Mapping[str, Any]], path: str) -> Environment:
    """Split the variables of the list at `path`."""
    kept, fetch, notes = list[Mapping[str, Any]](), list[Mapping[str, Any]](), list[Note]()
    token: Mapping[str, str] | None = None
    key: Mapping[str, str] | None = None
    for variable in {one["name"]: one for one in variables}.values():
        name, secret = str(variable["name"]), _secret(variable)
        said = ""
        if name in _TOKENS and secret:
            token = token or secret
            said = "the prefetch downloads: the token becomes spec.cache.tokenSecretRef, and no server gets it"
        elif name in _TOKENS:
            said = (
                "is written out: put it into a Secret and name it in spec.cache.tokenSecretRef, if the model needs it"
            )
        elif name in CACHES:
            said = f"{without_secret_value(variable)} is left out: servers read the model below /models"
        elif name in OFFLINE:
            said = f"{without_secret_value(variable)} is left out: servers are offline (HF_HUB_OFFLINE=1)"
        elif KEYS.get(name) == engine and secret:
            key, said = secret, "is spec.engine.apiKeySecretRef"
        elif written_out(variable):
            said = "is written out and looks like a secret: put it into a Secret and name it in spec.engine.env"
        if said:
            notes.append(Note(path=f"{path}[{name}]", text=said))
            continue
        kept.append(variable)
        if name in FETCHES:
            fetch.append(variable)
    return Environment(env=tuple(kept), fetch=tuple(fetch), token=token, api_key=key, notes=tuple(notes))


def secret_of(word: str, variables: Sequence[Mapping[str, Any]]) -> Mapping[str, str] | None:
    """The Secret key to which `$(VAR)`, `$VAR` or `${VAR}` refers."""
    name = word.strip("$(){}\"'") if word.startswith("$") else ""
    return next((secret for one in variables if one["name"] == name and (secret := _secret(one))), None)


def _secret(variable: Mapping[str, Any]) -> Mapping[str, str] | None:
    ref = (variable.get("valueFrom") or {}).get("secretKeyRef")
    return {"name": str(ref["name"]), "key": str(ref["key"])} if ref else None
