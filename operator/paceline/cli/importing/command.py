"""Finds the engine's words in a container's command and arguments, including those in a shell script."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from paceline.cli.importing.script import (
    ShellCommand,
    ShellOnlyError,
    assigned_value,
    assignment,
    commands,
    literal,
    shell_words,
)
from paceline.cli.importing.secret import is_secret
from paceline.engines import ENGINES
from paceline.engines.importing import Note, UnansweredError

ROWS = {name: engine.importing for name, engine in ENGINES.items()}
MODULES = {module: name for name, row in ROWS.items() for module in row.modules}
PROGRAMS = {program: name for name, row in ROWS.items() for program in row.programs}
_IMAGES = {row.entry_point: name for name, row in ROWS.items() if row.entry_point}

SHELLS = ("sh", "bash", "ash", "dash")
TAKES_A_WORD = re.compile(r"[-+][elux]*c?o")
"""Shell options that take a word: `-o pipefail`, `-euo pipefail`."""
IS_A_SCRIPT = re.compile(r"[-+][elux]*c[eluxo]*")
SET = re.compile(r"[-+]([eux]+o?|o)|pipefail|errexit|nounset|xtrace")
"""Words of `set` that do not change a command's words."""
_DECIDING = frozenset({
    "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "function",
    "time", "coproc", "!", "{", "}", "[", "[[", "test", "eval", "read", "shift", "unset", "readonly", "local",
    "declare", "typeset", "alias", "getopts", "let", "shopt", "mapfile", "readarray", "exit", "return", "break",
    "continue", "trap", "command", "builtin", "xargs",
})  # fmt: skip
"""Shell words and programs that decide whether other commands run, or with which words."""
STARTS = re.compile("|".join([*map(re.escape, MODULES), *(rf"\b{program}\s+{first}\b" for program, first in PROGRAMS)]))
"""Matches a script that starts an engine."""
KUBELETS = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
"""References that the kubelet replaces in command, arguments and variables; two dollars stand for one."""
_SILENT = (":", "exec", "set", "true", "wait")
"""Programs in a script that a rendered command can omit."""
PRINT = ("echo", "printf")
"""Programs that print their words and start nothing."""
OTHER_WAY = (
    "let paceline import pod/NAME -n NAMESPACE read the running engine, or write the arguments into the "
    "container's args"
)
"""Advice for a script that cannot be read."""
OPTION = re.compile(r" (--[\w-]+)(?:[ =](?!-)(\S+))?")
OF_A_WHOLE = frozenset({"--local-dir", "--revision", "--token", "--max-workers", "--cache-dir",
                        "--local-dir-use-symlinks", "--quiet", "--force-download", "--resume-download"})  # fmt: skip
"""Options of `hf download` that still download all files of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a container starts its engine. `env`: variables that the script sets. `downloads`: directory → source and
    revision of the model that the script downloads there."""

    engine: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    downloads: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def launch(container: Mapping[str, Any]) -> Launch | None:
    """How the container starts its engine; None if it starts no known one. Raises UnansweredError for a script that
    cannot be read."""
    path = f"containers[{container.get('name', '')}]"
    written = literals(container.get("env") or ())
    command = [str(word) for word in container.get("command") or ()]
    words = [_filled(word, written) for word in (*command, *map(str, container.get("args") or ()))]
    if found := _script(words):
        before, script, given = found
        try:
            return _of_script(before, script, container, path)
        except ShellOnlyError as error:
            if STARTS.search(" ".join((script, *given))):
                raise UnansweredError(f"{path}: the script {error}; {OTHER_WAY}") from error
            return None
    if direct := engine_in(words):
        engine, start, end = direct
        env, before = _of_env(words[:start])
        notes = tuple(_before(before, path))
        return Launch(engine=engine, args=tuple(words[end:]), env=env, notes=notes)
    image = str(container.get("image", ""))
    by_image = next((engine for part, engine in _IMAGES.items() if part in image), None)
    return None if by_image is None or command else Launch(engine=by_image, args=tuple(words))


def literals(variables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Variables with literal values, with references to earlier ones replaced as the kubelet does."""
    known: dict[str, str] = {}
    for variable in variables:
        if "valueFrom" not in variable:
            known[str(variable["name"])] = _filled(str(variable.get("value") or ""), known)
    return known


def _filled(word: str, literal: Mapping[str, str]) -> str:
    """The word after the kubelet's replacements. References to secrets and to non-literal variables stay."""

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return match[0] if is_secret(match[1]) else literal.get(match[1], match[0])

    return KUBELETS.sub(value, word)


def _script(words: Sequence[str]) -> tuple[Sequence[str], str, Sequence[str]] | None:
    """Splits `sh -c`: the words before the shell, the script, and the script's arguments from $0 on."""
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


def engine_in(words: Sequence[str]) -> tuple[str, int, int] | None:
    """The engine, the index of its command, and the index of its arguments."""
    for i, word in enumerate(words):
        program, following = PurePosixPath(word).name, words[i + 1 :]
        if following and (engine := PROGRAMS.get((program, following[0]))):
            return engine, i, i + 2
        if re.fullmatch(r"python[\d.]*", program):
            options = list(takewhile(lambda each: each.startswith("-") and each != "-m", following))
            after = [*following[len(options) :]]
            if after[:1] == ["-m"] and len(after) > 1 and after[1] in MODULES:
                return MODULES[after[1]], i, i + len(options) + 3
    return None


def _of_env(words: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    """Reads the words before the engine: the variables that `env NAME=VALUE` sets, and the ignored words."""
    names = [PurePosixPath(word).name for word in words]
    at = names.index("env") if "env" in names else len(names)
    pairs = [word.partition("=") for word in takewhile(lambda word: re.match(r"[A-Za-z_]\w*=", word), words[at + 1 :])]
    if (rest := words[at + 1 + len(pairs) :]) and rest[0].startswith("-"):
        return {}, words
    return {name: text for name, _, text in pairs}, (*words[:at], *rest)


def _before(words: Sequence[str], path: str) -> Iterator[Note]:
    """Names only the program: its words may contain a secret."""
    if words:
        text = f"{PurePosixPath(words[0]).name} comes before the engine and is left out, with its options"
        yield Note(path=f"{path}.command", text=text)


def _of_script(before: Sequence[str], script: str, container: Mapping[str, Any], path: str) -> Launch | None:
    """Raises UnreadableError."""
    variables = container.get("env") or ()
    exported = {str(one["name"]) for one in variables}
    known: dict[str, str | None] = {name: f"$({name})" for name in exported}
    known |= {name: text for name, text in literals(variables).items() if not is_secret(name)}
    if container.get("envFrom"):  # it may set a variable for which the script has a default
        known |= dict.fromkeys(set(re.findall(r"\$\{(\w+)", script)) - exported)
    own, downloads = dict[str, str | None](), dict[str, tuple[str, str]]()
    found: Launch | None = None
    notes, at = list(_before(before, path)), f"{path}.command"
    ran = depends = of_engine = False
    for one in commands(script, frozenset(exported)):
        if not one.after:
            if depends and not found:
                raise ShellOnlyError("sets a variable only if a program before it succeeds")
            ran = depends = False
        of_engine &= one.after == "|"
        words, fault = _words(one, known)
        program = PurePosixPath(words[0]).name if words else ""
        _refuse(program, words, one)
        sets = _sets(one, known)
        if program in ("", "export"):
            exported |= {literal(word).partition("=")[0] for word in one.words[1:]}
            own |= {} if found else sets
            known |= {name: f"$({name})" if text and is_secret(name) else text for name, text in sets.items()}
            depends |= ran and bool(sets)
            continue
        prints = program in PRINT
        started = None if prints else engine_in(words)
        if fault and not prints and (started or STARTS.search(" ".join(words))):
            raise fault
        if started and found:
            raise ShellOnlyError("starts two engines")
        if started:
            engine, start, end = started
            of_env, copied = _of_env([word for word in words[:start] if word != "exec"])
            given = {name: text for name, text in own.items() if name in exported} | sets | of_env
            env, told = _known(given, container, at)
            notes += [*_before(copied, path), *told]
            if one.redirected:
                text = "its redirections are left out: the log goes to the container's output"
                notes.append(Note(path=at, text=text))
            found, of_engine = Launch(engine=engine, args=tuple(words[end:]), env=env), True
        elif not fault and (downloaded := _downloaded(words)):
            directory, source, revision = downloaded
            downloads[directory] = source, revision
            text = f"downloads {source} to {directory}: the prefetch does that if it is the model or its head"
            notes.append(Note(path=at, text=text))
        elif program not in _SILENT:
            text = f"the script also runs {program}: put that into the image, or into an init container in"
            text = f"{text} spec.engine.podTemplate"
            if of_engine:
                text = f"the pipe to {program} is left out: the log goes to the container's output"
            notes.append(Note(path=at, text=text))
        ran |= program not in _SILENT
    return found and replace(found, notes=tuple(notes), downloads=downloads)


def _refuse(program: str, words: Sequence[str], one: ShellCommand) -> None:
    """Refuses a program that decides about later commands."""
    if program in _DECIDING:
        raise ShellOnlyError(f"has `{program}`")
    if program == "set" and not all(SET.fullmatch(word) for word in words[1:]):
        raise ShellOnlyError("has `set` with options other than -e, -u, -x and -o pipefail")
    if program in (".", "source") and PurePosixPath(words[-1]).name != "activate":
        raise ShellOnlyError(f"has `{program}`, which may set variables")
    if program == "exec" and words[1:] and (words[1].startswith("-") or not engine_in(words)):
        raise ShellOnlyError("has `exec` of a program other than the engine")
    if one.assigned and program in ("export", "set", ":", ".", "source"):
        raise ShellOnlyError(f"sets a variable before `{program}`")
    if one.piped and (program == "export" or (one.assigned and not program)):
        raise ShellOnlyError("sets a variable in a pipe")


def _words(one: ShellCommand, known: Mapping[str, str | None]) -> tuple[list[str], ShellOnlyError | None]:
    """The words, and the error if they are not known: only the engine's need be."""
    words, fault = list[str](), None
    for word in one.words:
        try:
            words += shell_words(word, known)
        except ShellOnlyError as error:
            words.append(literal(word))
            fault = fault or error
    return words, fault


def _sets(one: ShellCommand, known: Mapping[str, str | None]) -> dict[str, str | None]:
    """Variables that the command sets; None for an unknown value."""
    values = dict[str, str | None]()
    pairs = [*one.assigned]
    if one.words and literal(one.words[0]) == "export":
        if not all(literal(word).partition("=")[0].isidentifier() for word in one.words[1:]):
            raise ShellOnlyError("has `export` with arguments that are not names")
        pairs += filter(None, map(assignment, one.words[1:]))
    for name, word in pairs:
        if any(piece.name in values for piece in word):
            raise ShellOnlyError(f"sets {name} from a variable that the same command sets")
        try:
            values[name] = assigned_value(word, known)
            if not one.assigned and len(shell_words(word, known)) != 1:  # some shells split the value of an export
                values[name] = None
        except ShellOnlyError:
            values[name] = None
    return values


def _known(
    env: Mapping[str, str | None], container: Mapping[str, Any], at: str
) -> tuple[dict[str, str], Iterator[Note]]:
    """The variables with known values, from the script or the container; and notes about the others."""
    whole = {f"$({one['name']})" for one in container.get("env") or ()}
    kept = {name: text for name, text in env.items() if text is not None and ("$(" not in text or text in whole)}
    text = "its value is not known before the script runs, so it is left out: write it into spec.engine.env"
    return kept, (Note(path=f"{at} {name}", text=text) for name in env if name not in kept)


def _downloaded(words: Sequence[str]) -> tuple[str, str, str] | None:
    """Directory, source and revision, if the words download a whole model."""
    line = " ".join(words)
    options = dict(OPTION.findall(line))
    match OPTION.sub("", line).split():
        case [program, "download", repository] if PurePosixPath(program).name in ("hf", "huggingface-cli"):
            if "--local-dir" in options and options.keys() <= OF_A_WHOLE and "$(" not in repository:
                return normpath(options["--local-dir"]), f"hf://{repository}", options.get("--revision", "")
    return None
