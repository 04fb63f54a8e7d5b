"""The engine's own words in a container's command and arguments, which may stand in a shell's script."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from paceline.cli.importing.note import Note, UnansweredError, is_secret
from paceline.cli.importing.script import Command, assignment, commands, expanded

MODULES: Mapping[str, str] = {
    "sglang.launch_server": "SGLang",
    "sgl_jax.launch_server": "SGLangJAX",
    "vllm.entrypoints.openai.api_server": "VLLM",
}
"""Module after `python -m` → engine."""
PROGRAMS: Mapping[tuple[str, str], str] = {("sglang", "serve"): "SGLang", ("vllm", "serve"): "VLLM"}
IMAGES: Mapping[str, str] = {"vllm-openai": "VLLM"}
"""Part of an image's name → the engine that its own entry point starts: there are arguments, and no command."""

SHELLS = ("sh", "bash", "ash", "dash", "zsh")
TAKES_A_WORD = re.compile(r"[-+]\w*[oO]")
"""Options of a shell that a word follows: `-o pipefail`, `-euo pipefail`."""
IS_A_SCRIPT = re.compile(r"[-+]\w*c\w*")
STARTS = re.compile(r"sglang\.launch_server|sgl_jax\.launch_server|vllm\.entrypoints|\b(sglang|vllm)\s+serve\b")
"""In a script that starts an engine."""
KUBELETS = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
"""What the kubelet fills in, in command, arguments and variables; two dollars are one."""
SILENT = ("set", "exec", ":", "true", "wait")
"""Words of a script that do nothing which a rendered command lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a container starts its engine. `env` are literal variables that the script sets."""

    engine: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    notes: tuple[Note, ...]


def launch(container: Mapping[str, Any]) -> Launch | None:
    """None for a container that starts no engine we know. Raises UnansweredError for a script that cannot be read."""
    name = f"containers[{container.get('name', '')}]"
    literal = literals(container.get("env") or ())
    command = [str(word) for word in container.get("command") or ()]
    words = [_filled(word, literal) for word in (*command, *map(str, container.get("args") or ()))]
    if found_script := _script(words):
        found = _of_script(*found_script, literal, name)
        return found and _without_output(found, {str(one["name"]) for one in container.get("env") or ()}, name)
    if direct := _engine(words):
        engine, start, end = direct
        notes = _before(words[:start], name)
        return Launch(engine=engine, args=tuple(words[end:]), env={}, notes=tuple(notes))
    image = str(container.get("image", ""))
    by_image = next((engine for part, engine in IMAGES.items() if part in image), None)
    return None if by_image is None or command else Launch(engine=by_image, args=tuple(words), env={}, notes=())


def literals(variables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Variables that are written out, as the kubelet fills in those before them."""
    known: dict[str, str] = {}
    for variable in variables:
        if "valueFrom" not in variable:
            known[str(variable["name"])] = _filled(str(variable.get("value") or ""), known)
    return known


def _filled(word: str, literal: Mapping[str, str]) -> str:
    """As the kubelet hands it over. A variable that is no literal, or a secret, stays as it is written."""

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return match[0] if is_secret(match[1]) else literal.get(match[1], match[0])

    return KUBELETS.sub(value, word)


def _script(words: Sequence[str]) -> tuple[Sequence[str], str, Sequence[str]] | None:
    """Of `sh -c`: the words before the shell, the script, and the script's arguments from $0 on."""
    for first, word in enumerate(words):
        if PurePosixPath(word).name not in SHELLS:
            continue
        at, is_script = first + 1, False
        while at < len(words) and words[at][:1] in ("-", "+"):
            is_script |= bool(IS_A_SCRIPT.fullmatch(words[at]))
            at += 2 if TAKES_A_WORD.fullmatch(words[at]) else 1
        if is_script and at < len(words):
            return words[:first], words[at], words[at + 1 :]
    return None


def _engine(words: Sequence[str]) -> tuple[str, int, int] | None:
    """The engine, where its command begins, and where its arguments do."""
    for i, word in enumerate(words):
        program, following = PurePosixPath(word).name, words[i + 1 :]
        if following and (engine := PROGRAMS.get((program, following[0]))):
            return engine, i, i + 2
        if re.fullmatch(r"python[\d.]*", program):
            options = list(takewhile(lambda each: each.startswith("-") and each != "-m", following))
            after = following[len(options) :]
            if after[:1] == ["-m"] and len(after) > 1 and after[1] in MODULES:
                return MODULES[after[1]], i, i + len(options) + 3
    return None


def _before(words: Sequence[str], path: str) -> Iterator[Note]:
    if words:
        yield Note(path=f"{path}.command", text=f"`{shlex.join(words)}` stands before the engine and is left out")


def _of_script(
    before: Sequence[str], script: str, given: Sequence[str], literal: Mapping[str, str], path: str
) -> Launch | None:
    env: dict[str, str] = {}
    found: Launch | None = None
    notes = list(_before(before, path))
    for one in _commands(script, path):
        known = {**literal, **env}
        pairs = [assignment(word, known, given) for word in one.words]
        count = len(list(takewhile(bool, pairs)))
        assigned = dict(filter(None, pairs[:count]))
        rest = [field for word in one.words[count:] for field in expanded(word, known, given)]
        at = _engine(rest) if found is None else None
        if at is None:
            exported = dict(filter(None, pairs)) if rest[:1] == ["export"] else {}
            env |= exported or ({} if rest else assigned)
            if rest and rest[0] not in SILENT and not exported:
                notes.append(_also(one.raw, path))
            continue
        engine, start, end = at
        env |= assigned
        copied = [word for word in rest[:start] if word not in SILENT]
        notes += _before(copied, path)
        if one.redirected:
            text = f"`{' '.join(one.redirected)}` is left out: the log goes to the container's output"
            notes.append(Note(path=f"{path}.command", text=text))
        found = Launch(engine=engine, args=tuple(rest[end:]), env={}, notes=())
    if found is None:
        return None
    return Launch(engine=found.engine, args=found.args, env=env, notes=tuple(notes))


def _without_output(found: Launch, names: Collection[str], path: str) -> Launch:
    """Of the variables that the script sets, only those whose values are known, or those of the container's `names`."""
    gone = {name: value for name, value in found.env.items() if "$(" in value and value[2:-1] not in names}
    notes = [
        Note(path=f"{path}.command", text=f"{name}={value} is left out: write what it is in spec.engine.env")
        for name, value in gone.items()
    ]
    kept = {name: value for name, value in found.env.items() if name not in gone}
    return replace(found, env=kept, notes=(*found.notes, *notes))


def _also(raw: str, path: str) -> Note:
    text = f"the script also runs `{raw}`: put that into the image, or into an init container in "
    return Note(path=f"{path}.command", text=f"{text}spec.engine.podTemplate")


def _commands(script: str, path: str) -> Sequence[Command]:
    """None of a script that cannot be read and starts no engine."""
    try:
        return tuple(commands(script))
    except ValueError as error:
        if not STARTS.search(script):
            return ()
        raise UnansweredError(f"{path}.args: the script cannot be read ({error}): write its words as a list") from error
