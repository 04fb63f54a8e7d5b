"""Hides secrets in foreign text: known values, and text that looks like a secret.

User names in addresses (`://user:password@`) are hidden too. A text may be cut in the middle of a secret.
"""

import re
from collections.abc import Collection

HIDDEN = "***"
_SHORTEST = 6
"""Minimum characters of a known secret's part that is hidden at the beginning or end of a text."""
_NAME = r"[\w-]*(?:api[_-]?key|(?:hf|access|auth|hub)[_-]?token|password|passwd|secret|authorization)"
_NAMED = re.compile(
    rf"""(?P<name>{_NAME}["']?\s*=\s*["']?|{_NAME}["']?\s*:\s*["']|--{_NAME}["',]*\s+["']?)"""
    r"""(?!None\b|null\b|\*\*\*)(?P<value>(?<=["'])[^"']+|[^\s"',;)}\]]+)""",
    re.IGNORECASE,
)
_SHAPED = re.compile(
    r"\bhf_[A-Za-z0-9]{8,}|\bsk-[\w-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bAKIA[0-9A-Z]{12,}|\beyJ[\w-]{8,}\.[\w.-]+"
    r"|(?<=Bearer )[^\s\"',]+|(?<=://)[^/@\s]+(?=@)"
)
"""Tokens of hubs and clouds, JSON web tokens, and values after a name that suggests a secret."""


def without_secrets(text: str) -> str:
    """The text with "***" for everything that looks like a secret. For foreign text with secrets not known here."""
    return _SHAPED.sub(HIDDEN, _NAMED.sub(rf"\g<name>{HIDDEN}", text))


def without(text: str, secrets: Collection[str]) -> str:
    """The text with "***" for each of the secrets, and for a secret's part at either end of a cut text."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
        for length in range(min(len(secret) - 1, len(text)), _SHORTEST - 1, -1):
            if text.endswith(secret[:length]):
                text = text[:-length] + HIDDEN
            if text.startswith(secret[-length:]):
                text = HIDDEN + text[length:]
    return text
