"""A shell's script as its commands: words with what the shell would fill in, without comments and documents (<<)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.cli.importing.note import is_secret

SPECIAL = " \t\r\n;&|()<>"
REDIRECTION = re.compile(r"\d*(<<<|<<-?|[<>]&|&?>>?|>\||<>?)")
DOCUMENT = ("<<", "<<-")
BRACED = re.compile(r"([A-Za-z_]\w*|[@*#]|\d+)(?::?([-=+?])(.*))?", re.DOTALL)
"""Between ${ and }: a name, and what stands for it if it is not set (or, after +, if it is)."""
NAME = re.compile(r"[A-Za-z_]\w*|[@*\d]")
ASSIGNED = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a word: text, or the variable `name`. `instead` is what `how` (- = + ?) puts in its place."""

    text: str
    quoted: bool
    name: str = ""
    how: str = ""
    instead: str = ""


Word = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`raw` is how it is written, on one line; `redirected` what of it are redirections."""

    words: tuple[Word, ...]
    raw: str
    redirected: tuple[str, ...]


def commands(script: str) -> Iterator[Command]:
    """Whatever stands between `;`, `&`, `|`, brackets and ends of lines. Raises ValueError for a quote without end."""
    at, start, words, redirected, documents = 0, 0, list[Word](), list[str](), list[str]()
    script = re.sub(r"(?m)^\s*#.*\n", "", script.replace("\r\n", "\n"))  # between continued lines, too
    while at <= len(script):
        char = script[at : at + 1]
        redirection = REDIRECTION.match(script, at)
        if redirection:
            word, end = _word(script, _blank(script, redirection.end()))
            redirected.append("".join(script[at:end].split()))
            if redirection[1] in DOCUMENT:
                documents.append("".join(piece.text for piece in word))
            at = end
        elif char in ("", "\n", ";", "&", "|", "(", ")"):
            if words or redirected:
                yield Command(words=tuple(words), raw=" ".join(script[start:at].split()), redirected=tuple(redirected))
            at += 1
            while char == "\n" and documents:
                at = _after(script, at, documents.pop(0))
            start, words, redirected = at, [], []
        elif char == "#":
            at = (script + "\n").index("\n", at)
        elif char in " \t\r" or script.startswith("\\\n", at):
            at += 1 if char != "\\" else 2
        else:
            word, at = _word(script, at)
            words.append(word)


def _blank(script: str, at: int) -> int:
    return at + len(script[at:]) - len(script[at:].lstrip(" \t"))


def _after(script: str, at: int, end: str) -> int:
    """The line after a document."""
    match = re.compile(rf"^\t*{re.escape(end)}$\n?", re.MULTILINE).search(script, at)
    return match.end() if match else len(script)


def _word(script: str, at: int) -> tuple[Word, int]:
    pieces, quote = list[Piece](), ""
    while at < len(script) and (quote or script[at] not in SPECIAL):
        char = script[at]
        if char == "\\" and quote != "'":
            kept = "\\" if quote and script[at + 1 : at + 2] not in ("$", "`", '"', "\\", "\n") else ""
            pieces.append(Piece(text=kept + script[at + 1 : at + 2].replace("\n", ""), quoted=True))
            at += 2
        elif char == quote or (not quote and char in "'\""):
            quote = "" if quote else char
            pieces.append(Piece(text="", quoted=True))
            at += 1
        elif char in "$`" and quote != "'":
            piece, at = _filled_in(script, at, bool(quote))
            pieces.append(piece)
        else:
            pieces.append(Piece(text=char, quoted=bool(quote)))
            at += 1
    if quote:
        raise ValueError("No closing quotation")
    return tuple(pieces), at


def _filled_in(script: str, at: int, quoted: bool) -> tuple[Piece, int]:
    """What begins with a dollar or a backtick. A command's output is no text that we know: $(COMMAND)."""
    if script[at] == "`":
        end = script.find("`", at + 1)
        if end < 0:
            raise ValueError("no closing backtick")
        return Piece(text=f"$({script[at + 1 : end]})", quoted=True), end + 1
    if script.startswith("$(", at):
        end = _closing(script, at + 1, "()")
        return Piece(text=script[at:end], quoted=True), end
    if script.startswith("${", at):
        end = _closing(script, at + 1, "{}")
        inside = script[at + 2 : end - 1]
        if match := BRACED.fullmatch(inside):
            instead = (match[3] or "").strip("\"'")
            return Piece(text="", quoted=quoted, name=match[1], how=match[2] or "", instead=instead), end
        return Piece(text=f"$({inside})", quoted=True), end
    if match := NAME.match(script, at + 1):
        return Piece(text="", quoted=quoted, name=match[0]), match.end()
    return Piece(text="$", quoted=quoted), at + 1


def _closing(script: str, at: int, pair: str) -> int:
    """After the bracket that closes the one at `at`; brackets in quotes count as any."""
    depth = 0
    for i in range(at, len(script)):
        depth += (script[i] == pair[0]) - (script[i] == pair[1])
        if not depth:
            return i + 1
    raise ValueError(f"no closing {pair[1]}")


def assignment(word: Word, known: Mapping[str, str], given: Sequence[str]) -> tuple[str, str] | None:
    """NAME=VALUE, whose value is one text."""
    plain = "".join(piece.text if not (piece.quoted or piece.name) else "\0" for piece in word)
    if not (match := ASSIGNED.match(plain)):
        return None
    return match[1], "".join(_value(piece, known, given) for piece in word[match.end() :])


def expanded(word: Word, known: Mapping[str, str], given: Sequence[str]) -> list[str]:
    """The words that a shell makes of it: it splits what a variable outside of quotes has. `given` are its arguments,
    from $0 on. A variable that is not known, or a secret, is $(NAME), as the kubelet would have it."""
    fields, is_word = [""], False
    for piece in word:
        if piece.name in ("@", "*"):
            values = list(given[1:]) if piece.quoted else " ".join(given[1:]).split()
        elif piece.name and not piece.quoted:
            value = _value(piece, known, given)
            values = [value] if "$(" in value else value.split()
        else:
            values, is_word = [_value(piece, known, given)], True
        for i, value in enumerate(values):
            fields += [""] if i else []
            fields[-1] += value
    return fields if is_word or fields != [""] else []


def _value(piece: Piece, known: Mapping[str, str], given: Sequence[str]) -> str:
    name = piece.name
    if not name:
        return piece.text
    if name in ("@", "*"):
        return " ".join(given[1:])
    if name.isdecimal():
        return given[int(name)] if int(name) < len(given) else ""
    value = known.get(name) if not is_secret(name) else None
    if value is not None and (value or not piece.how):
        return piece.instead if piece.how == "+" else value
    if piece.how in ("-", "=") and "$" not in piece.instead:
        return piece.instead
    return f"$({name})"
