"""The engine's own words in a container's command and arguments, which may stand in a shell's script."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from paceline.cli.importing.note import Note, UnansweredError, is_secret

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
OPERATORS = frozenset("();<>|&\n")
BETWEEN = re.compile(r"[;&|\n]+")
"""Between two commands of a script."""
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
KUBELETS = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")
"""What the kubelet fills in, in command and arguments."""
SHELLS_OWN = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^}]*))?\})")
"""What a shell fills in."""
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
    literal = {v["name"]: str(v.get("value", "")) for v in container.get("env") or () if "valueFrom" not in v}
    command = [str(word) for word in container.get("command") or ()]
    words = _filled([*command, *map(str, container.get("args") or ())], literal)
    if script := _script(words):
        return _of_script(script, literal, name)
    if found := _engine(words):
        engine, start, end = found
        notes = _before(words[:start], name)
        return Launch(engine=engine, args=tuple(words[end:]), env={}, notes=tuple(notes))
    image = str(container.get("image", ""))
    by_image = next((engine for part, engine in IMAGES.items() if part in image), None)
    return None if by_image is None or command else Launch(engine=by_image, args=tuple(words), env={}, notes=())


def _filled(words: Sequence[str], literal: Mapping[str, str]) -> list[str]:
    """As the kubelet hands them over. A variable that is no literal, or a secret, stays as it is written."""

    def value(match: re.Match[str]) -> str:
        return match[0] if is_secret(match[1]) else literal.get(match[1], match[0])

    return [KUBELETS.sub(value, word) for word in words]


def _script(words: Sequence[str]) -> str:
    """The script of `sh -c`; "" if it is none."""
    if not words or PurePosixPath(words[0]).name not in SHELLS:
        return ""
    options = list(takewhile(lambda word: word.startswith("-"), words[1:]))
    return words[1 + len(options)] if options and options[-1].endswith("c") and len(words) > 1 + len(options) else ""


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


def _of_script(script: str, literal: Mapping[str, str], path: str) -> Launch | None:
    env: dict[str, str] = {}
    found: Launch | None = None
    notes: list[Note] = []
    for raw in _commands(script, path):
        known = {**literal, **env}
        words, redirected = _redirections([_expanded(word, known) for word in raw])
        assigned, rest = _assignments(words)
        at = _engine(rest) if found is None else None
        if at is None:
            exported, others = _assignments(rest[1:]) if rest[:1] == ["export"] else ({}, rest)
            env |= {**(assigned if not rest else {}), **exported}
            if others and (others[0] not in SILENT or rest[:1] == ["export"]):
                notes.append(_also(raw, path))
            continue
        engine, start, end = at
        env |= assigned
        args, copied = tuple(rest[end:]), [word for word in rest[:start] if word not in SILENT]
        notes += [*_before(copied, path)]
        if redirected:
            text = f"`{''.join(redirected)}` is left out: the log goes to the container's output"
            notes.append(Note(path=f"{path}.command", text=text))
        found = Launch(engine=engine, args=args, env={}, notes=())
    if found is None:
        return None
    return Launch(engine=found.engine, args=found.args, env=env, notes=tuple(notes))


def _also(words: Sequence[str], path: str) -> Note:
    """A secret in it is hidden."""
    shown = [f"{word.partition('=')[0]}=…" if is_secret(word.partition("=")[0]) else word for word in words]
    text = f"the script also runs `{' '.join(shown)}`: put that into the image, or into an init container in "
    return Note(path=f"{path}.command", text=f"{text}spec.engine.podTemplate")


def _commands(script: str, path: str) -> Iterator[list[str]]:
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("#")]
    lexer = shlex.shlex(re.sub(r"\\\n", " ", "\n".join(lines)), posix=True, punctuation_chars="".join(OPERATORS))
    lexer.whitespace_split, lexer.commenters, lexer.whitespace = True, "", " \t\r"
    words: list[str] = []
    try:
        for word in lexer:
            if word and BETWEEN.fullmatch(word) and not word.startswith((">", "<")):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError as error:
        raise UnansweredError(f"{path}.args: the script cannot be read ({error}): write its words as a list") from error
    yield words


def _redirections(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Without `> file`, `2>&1`; and those."""
    kept, gone, skip = list[str](), list[str](), False
    for i, word in enumerate(words):
        is_operator = bool(word) and set(word) <= OPERATORS and word[0] in "<>"
        before_one = word.isdecimal() and i + 1 < len(words) and words[i + 1][:1] in ("<", ">")
        (gone if skip or is_operator or before_one else kept).append(word)
        skip = is_operator
    return kept, gone


def _assignments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """NAME=VALUE at the beginning, and the rest."""
    set_first = [match for word in words if (match := ASSIGNMENT.fullmatch(word))]
    count = len(list(takewhile(ASSIGNMENT.fullmatch, words)))
    return {match[1]: match[2] for match in set_first[:count]}, list(words[count:])


def _expanded(word: str, known: Mapping[str, str]) -> str:
    """A variable that is not known stays as it is written, for whoever needs it to complain."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in known and not is_secret(name):
            return known[name]
        return match[0] if match[3] is None else match[3]

    return SHELLS_OWN.sub(value, word)
