"""Finds literal secrets of a Deployment, by the name before them or by their shape. None is printed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paceline.api import Problem
from paceline.cli.importing.secret import is_secret
from paceline.core import masking
from paceline.core.masking import HIDDEN, without_secrets
from paceline.engines.importing import Note

REFERENCE = re.compile(r"(\$\([\w.-]+\)|\$\{\w+\}|\$\w+)")
"""References that a shell or the kubelet replaces are not secrets."""
_NAMED = re.compile(
    r"""(?P<name>(?<![\w-])--?[\w-]+(?:=|["',]*\s+["']?)|\b[A-Za-z_]\w*=["']?|"[\w-]+"\s*:\s*")"""
    r"""(?P<value>[^\s"'`,;&|)]+)"""
)
"""--flag VALUE, --flag=VALUE, NAME=VALUE, "name": "VALUE"."""
NO_SECRET = re.compile(r"[-/.$].*|true|false|\d", re.IGNORECASE | re.DOTALL)
"""Values after such a name that are not secrets: another flag, a path."""
SEVERAL = "--api-key"
"""A flag of vLLM that takes several values."""
SHORTEST = 8
"""Minimum length of a secret that is searched everywhere; shorter ones may be part of any word."""

MARKS = re.compile(r"key|token|pass|pwd|secret|credential|authorization|bearer|@|hf_|sk-|gh[pousr]_|AKIA|eyJ", re.I)
"""Text without any of these contains no secret."""
_LONGEST = 500
"""Characters that are searched at once: the time grows with their square."""


def masked(text: str) -> str:
    """The text, with *** for each secret that its name or its shape reveals."""
    if not MARKS.search(text):
        return text
    if len(text) > _LONGEST:
        return "".join(masked(part) for line in text.splitlines(keepends=True) for part in _cut(line))
    parts = REFERENCE.split(text)
    return "".join(part if i % 2 else without_secrets(_NAMED.sub(_of_a_name, part)) for i, part in enumerate(parts))


def _cut(line: str) -> Iterator[str]:
    for at in range(0, len(line), _LONGEST):
        yield line[at : at + _LONGEST]


def _of_a_name(match: re.Match[str]) -> str:
    name = re.search(r"[\w-]+", match["name"])
    secret = name and is_secret(name[0]) and not NO_SECRET.fullmatch(match["value"])
    return f"{match['name']}{HIDDEN}" if secret else match[0]


def written_out(variable: Mapping[str, Any]) -> bool:
    """Whether the variable is a secret with a literal value."""
    value = str(variable.get("value") or "")
    return bool(value) and (is_secret(str(variable["name"])) or masked(value) != value)


def secrets(template: Any) -> frozenset[str]:
    """The pod template's secrets that are long enough to be recognised in other text."""
    return frozenset(one for one in _secrets(template) if len(one) >= SHORTEST)


def _secrets(value: Any) -> Iterator[str]:
    match value:
        case {"name": str(name), "value": str(text)} if is_secret(name):
            yield text
        case Mapping():
            for one in value.values():
                yield from _secrets(one)
        case list():
            for i, one in enumerate(value):
                yield from (one,) if _follows(value, i) else _secrets(one)
        case str():
            yield from (match["value"] for match in _NAMED.finditer(value) if _of_a_name(match) != match[0])


def _follows(words: Sequence[Any], i: int) -> bool:
    """Whether the word is the value of a flag whose name reveals a secret."""
    if not i or not isinstance(words[i], str) or not isinstance(words[i - 1], str) or NO_SECRET.fullmatch(words[i]):
        return False
    return (words[i - 1].startswith("--") and is_secret(words[i - 1])) or (
        SEVERAL in words[:i] and _follows(words[:i], i - 1)
    )


def hide(
    manifest: dict[str, Any], notes: Sequence[Note], problems: Sequence[Problem], known: frozenset[str]
) -> tuple[dict[str, Any], list[Note], list[Problem]]:
    """The manifest, the notes and the problems without secrets. A secret in a required field is a problem; other
    containers lose the variable, like the engine's container."""
    template = manifest["spec"]["engine"].get("podTemplate", {})
    gone = list(_without_variables(template.get("spec", {})))
    found = dict[str, None]()
    engine = _hidden(manifest["spec"]["engine"], "spec.engine", known, found)
    manifest = {**manifest, "spec": {**manifest["spec"], "engine": engine}}
    text = f"looks like a secret that is written out, so {HIDDEN} replaces it: name a Secret that holds it"
    hidden = [replace(one, path=_shown(one.path, known), text=_shown(one.text, known)) for one in (*notes, *gone)]
    told = [replace(one, message=_shown(one.message, known)) for one in problems]
    return manifest, hidden, [*told, *(Problem(path=path, message=text) for path in found)]


def _without_variables(pod: Mapping[str, Any]) -> Iterator[Note]:
    """Removes the variables in place."""
    for kind in ("containers", "initContainers"):
        for container in pod.get(kind, ()):
            for variable in filter(written_out, container.get("env") or ()):
                text = "is written out and looks like a secret: put it into a Secret and name it in"
                path = f"{kind}[{container['name']}].env[{variable['name']}]"
                yield Note(path=path, text=f"{text} spec.engine.podTemplate")
            if "env" in container:
                container["env"] = [one for one in container["env"] or () if not written_out(one)]


def _hidden(value: Any, path: str, known: frozenset[str], found: dict[str, None]) -> Any:
    """Adds the paths of hidden values to `found`."""
    match value:
        case Mapping():
            return {key: _hidden(one, f"{path}.{key}", known, found) for key, one in value.items()}
        case list():
            followers = [i for i in range(len(value)) if _follows(value, i)]
            found |= {f"{path}[{i}]": None for i in followers}
            words = [HIDDEN if i in followers else one for i, one in enumerate(value)]
            return [_hidden(one, f"{path}[{i}]", known, found) for i, one in enumerate(words)]
        case str() if (shown := _shown(value, known)) != value:
            found[path] = None
            return shown
    return value


def _shown(text: str, known: frozenset[str]) -> str:
    return masking.without(masked(text), [one for one in known if one in text])
