"""What a prompt decides: its dataset, how long its answer is, and the answer's text.

All of it follows from the prompt alone, whichever arm is asked, unless one is told to leave (`settings`).
"""

import hashlib
import json
import math
from collections.abc import Container
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

INDEX_FILE = "prompts.json"
SHORTEST, LONGEST = 150, 700
"""Natural output lengths, tokens."""
CHARACTERS_A_TOKEN = 4
TEMPLATE_TOKENS = 12

WORDS = (
    " the", " a", " value", " of", " and", " result", " is", " to", " in", " for", " each", " list", " we", " can",
    " function", " returns", " with", " number", " then", " which", " that", " when", " first", " check", " if",
    " test", " file", " line", " error", " run", " so", ",",
)  # fmt: skip
END = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`dataset` None: of no built-in set. `natural_length` tokens until it ends by itself. From the token `fork` on an
    answer may go on in another way; it does on a server on which this is `left`."""

    tokens: int
    dataset: str | None
    natural_length: int
    digest: bytes
    begins: tuple[tuple[bytes, int], ...]
    """Hash and tokens of its beginnings, each of which ends with a message; the last is the whole prompt."""
    fork: int | None = None
    left: bool = False
    written: str = ""
    """The whole answer, where a form was asked for; its tokens are as long as those of a prompt."""

    def token(self, index: int) -> int:
        """The id of one token of the answer."""
        other = self.left and self.fork is not None and index >= self.fork
        return (self.digest[index % 32] + 7 * index + other) % len(WORDS)

    def text(self, start: int, stop: int, *, ends: bool) -> str:
        """The answer's tokens [start, stop); `ends`: the last of them is its natural end."""
        if self.written:
            return self.written[start * CHARACTERS_A_TOKEN : stop * CHARACTERS_A_TOKEN]
        words = [WORDS[self.token(index)] for index in range(start, stop)]
        if ends:
            words[-1] = END
        return "".join(words)


def prompt_hash(text: str) -> str:
    """Under which the index knows a prompt: 16 hexadecimal digits of the SHA-256 of the last user message."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def index() -> dict[str, str]:
    """Prompt hash → dataset, of the built-in sets."""
    listed = json.loads((files(__package__) / "data" / INDEX_FILE).read_text())
    return {digest: dataset for dataset, digests in listed.items() for digest in digests}


def prompt(text: str, last_user_message: str, known: dict[str, str]) -> Prompt:
    """`text` is all that is prefilled."""
    digest = hashlib.sha256(last_user_message.encode()).digest()
    return Prompt(
        tokens=max(1, len(text) // CHARACTERS_A_TOKEN),
        dataset=known.get(digest.hex()[:16]),
        natural_length=SHORTEST + int.from_bytes(digest[:4]) % (LONGEST - SHORTEST + 1),
        digest=digest,
        begins=((hashlib.sha256(text.encode()).digest(), max(1, len(text) // CHARACTERS_A_TOKEN)),),
    )


def chat_prompt(messages: list[dict[str, Any]], known: dict[str, str], tools: Any = None) -> Prompt:
    """Of a conversation: the dataset is that of the last user message. Tools stand before the messages."""
    texts = [(message.get("role"), _content(message.get("content"))) for message in messages]
    last = next((text for role, text in reversed(texts) if role == "user"), "")
    filler = "x" * (CHARACTERS_A_TOKEN * TEMPLATE_TOKENS)
    before = filler + (json.dumps(tools) if tools else "")
    whole, begins, read = before, list[tuple[bytes, int]](), hashlib.sha256(before.encode())
    for _, text in texts:
        whole += text
        read.update(text.encode())
        begins.append((read.digest(), len(whole) // CHARACTERS_A_TOKEN))
    found = prompt(whole, last, known)
    return replace(found, begins=tuple(begins) or found.begins)


def _content(content: Any) -> str:
    """Plain text, or the text parts of a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def cached_tokens(prompt: Prompt, seen: Container[bytes]) -> int:
    """Tokens of the longest beginning that was a whole prompt before, but for the last one of a whole prompt."""
    known = (tokens for digest, tokens in reversed(prompt.begins) if digest in seen)
    return min(prompt.tokens - 1, next(known, 0))


def in_form(prompt: Prompt, text: str) -> Prompt:
    """The same question, answered with this text."""
    return replace(prompt, written=text, natural_length=math.ceil(len(text) / CHARACTERS_A_TOKEN))
