"""Reads a shell script without decisions as commands: words, quotes, variables, one command after another.

Accepted scripts mean the same to POSIX sh and bash. Anything else raises UnreadableError: only a shell can follow it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_IGNORED = re.compile(r"(?:[ \t]|\\\n)+|#[^\n]*")
"""Ignored between words; only there does # begin a comment."""
OPERATOR = re.compile(r"&&|\|(?![|&])|;(?![;&])|\n|\d*(?:>>|>\||[<>]&|<>|>(?!\()|<(?![<(]))")
_VARIABLE = (
    r"(?P<variable>\$(?:(?P<bare>[A-Za-z_]\w*)|\((?P<kubelets>[A-Za-z_][\w.-]*)\)|\{(?P<name>[A-Za-z_]\w*)%s\}))"
)
OUTSIDE = re.compile(
    r"""(?P<joined>\\\n(?=[ \t\n;&|\\]|\Z))|\\(?P<escaped>[^\n])|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|"""
    r"""(?P<plain>[^ \t\n;&|<>()'"\\`$]+)|"""
    + _VARIABLE
    % r"""(?::-(?:(?P<default>[^"'`$\\{}~]*)|"(?P<quoted>[^"`$\\]*)"))?""",
    re.DOTALL | re.ASCII,
)
_INSIDE = re.compile(
    r"""(?P<joined>\\\n)|\\(?P<escaped>[$`"\\])|(?P<plain>[^$`\\]+|\\(?![$`"\\\n])|\$(?![\w{(\[@*#?$!-]))|"""
    + _VARIABLE % r"""(?::-(?P<quoted>[^"'`$\\{}]*))?""",
    re.DOTALL | re.ASCII,
)
"""A part of a word, outside quotes and inside double quotes."""
_UNREAD = re.compile(r"\$\(\(?|\$\{[!#]?\w*[^\w}]{0,2}|\$.|&&|\|\||[|;&<]{2}|.", re.DOTALL)
ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\[|\+?=)", re.ASCII)
FILES, OWN = re.compile(r"[*?[]"), re.compile(r"[*?[~{}]")
"""Characters that a shell expands: in a variable's value, and in the script itself."""


class ShellOnlyError(ValueError):
    """Script constructs that only a shell can evaluate. The message continues "the script"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a word: text, or the variable `name`, with a `default` if it is unset or empty."""

    text: str = ""
    quoted: bool
    name: str = ""
    default: "Piece | None" = None


Word = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """`assigned`: variables set before the words. `after`: the operator before the command, && or ||, or "" if it
    always runs. `piped`: | joins it with another command."""

    assigned: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    after: str
    piped: bool
    redirected: bool


def commands(script: str, kubelets: Collection[str]) -> Iterator[ShellCommand]:
    """`kubelets`: variables for $(NAME), which the kubelet replaces before the shell runs."""
    words, after, redirected, target = list[Word](), "", False, False
    for token in (*_tokens(script, kubelets), "\n"):
        if not isinstance(token, str):
            words += [] if target else [token]
            target = False
        elif ">" in token or "<" in token:
            redirected = target = True
        elif words or redirected:
            assigned, piped = tuple(_assigned(words)), "|" in (after, token)
            yield ShellCommand(assigned=assigned, words=tuple(words), after=after, piped=piped, redirected=redirected)
            words, after, redirected = [], "" if token in ";\n" else token, False


def _assigned(words: list[Word]) -> Iterator[tuple[str, Word]]:
    """Takes assignments off the front of the words."""
    while words and (found := assignment(words[0])):
        yield found
        del words[0]


def assignment(word: Word) -> tuple[str, Word] | None:
    """NAME=WORD."""
    first, *others = word
    if first.quoted or not (match := ASSIGNED.match(first.text)):
        return None
    if match[2] != "=" or match[1] == "IFS":
        raise ShellOnlyError(f"has `{match[0]}`")
    return match[1], (Piece(text=first.text[match.end() :], quoted=False), *others)


def _tokens(script: str, kubelets: Collection[str]) -> Iterator[Word | str]:
    """Words, and operators as written."""
    at, pieces = 0, list[Piece]()
    while at < len(script):
        if not pieces and (match := _IGNORED.match(script, at)):
            pass
        elif not pieces and (match := OPERATOR.match(script, at)):
            yield match[0]
        elif match := OUTSIDE.match(script, at):
            pieces += _pieces(match, kubelets)
        elif pieces and script[at] in " \t\n;&|<>":
            yield tuple(pieces)
            pieces = []
            continue
        else:
            raise _unreadable(script, at)
        at = match.end()
    if pieces:
        yield tuple(pieces)


def _pieces(match: re.Match[str], kubelets: Collection[str]) -> Iterator[Piece]:
    kind, found = str(match.lastgroup), match.groupdict()
    text, quoted, at = str(found[kind]), match.re is _INSIDE or kind != "plain", 0
    if kind == "double":
        yield Piece(quoted=True)
        while at < len(text):
            if (inner := _INSIDE.match(text, at)) is None:
                raise _unreadable(text, at)
            yield from _pieces(inner, kubelets)
            at = inner.end()
    elif kind == "variable" and (name := found["bare"] or found["name"]):
        written = {key: found.get(key) for key in ("default", "quoted")}
        default = next(
            (Piece(text=said, quoted=key == "quoted") for key, said in written.items() if said is not None), None
        )
        yield Piece(quoted=match.re is _INSIDE, name=name, default=default)
    elif kind == "variable" and found["kubelets"] not in kubelets:
        raise ShellOnlyError("has `$(`")
    elif kind != "joined":
        yield Piece(text=text, quoted=quoted)


def _unreadable(script: str, at: int) -> ShellOnlyError:
    match = _UNREAD.match(script, at)
    assert match
    return ShellOnlyError("has an unclosed quote" if match[0] in "'\"" else f"has `{match[0].strip()}`")


def literal(word: Word) -> str:
    """The word without its variables."""
    return "".join(piece.text for piece in word)


def assigned_value(word: Word, known: Mapping[str, str | None]) -> str:
    """The value of a variable that is set to the word. `known` has None for an unknown value."""
    if any("~" in piece.text and not piece.quoted for piece in word):
        raise ShellOnlyError("has `~` without quotes")
    return "".join(_filled(piece, known).text for piece in word)


def shell_words(word: Word, known: Mapping[str, str | None]) -> list[str]:
    """The words after the shell's expansion: the value of an unquoted variable is split at blanks."""
    found, last = list[str](), None
    for piece in word:
        filled = _filled(piece, known)
        if not filled.quoted and (match := (FILES if piece.name else OWN).search(filled.text)):
            raise ShellOnlyError(f"has `{match[0]}` without quotes in the engine's arguments")
        if filled.quoted or not piece.name:
            last = (last or "") + filled.text
            continue
        for part in re.split(r"([ \t\n]+)", filled.text):
            if part.strip(" \t\n"):
                last = (last or "") + part
            elif part and last is not None:
                found.append(last)
                last = None
    return found if last is None else [*found, last]


def _filled(piece: Piece, known: Mapping[str, str | None]) -> Piece:
    """The piece with its variable replaced."""
    if not piece.name:
        return piece
    text = known.get(piece.name)
    if piece.default and (text == "" or piece.name not in known):
        return piece.default
    if text is None:
        raise ShellOnlyError(f"uses ${piece.name}, which the Deployment does not define")
    return Piece(text=text, quoted=piece.quoted)
