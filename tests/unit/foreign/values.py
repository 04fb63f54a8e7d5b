"""What strangers say: good values with something wrong in them, and values that were never good."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, 1e308, -1e308, 5e-324, 10**30, 10**400, math.nan, math.inf, -math.inf),
    *("", "x", "1" * 5000, "nan", "1e999", "²", "\0", "\ud800", "\u202e<script>", "../../x", "[" * 300),
    *([], {}, [[]], [None], {"": None}, {"a": 1}, [1, "2", None, {}]),
)
FEW = settings(max_examples=60, phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False)
"""A value that fails is shown as it was drawn: to make it smaller takes minutes where it has 20,000 brackets."""
LONGEST = 3000
"""Characters of a refusal: it ends in a status, a termination message or a line of a terminal."""
TEXT = st.text(max_size=40) | st.sampled_from([one for one in ODD if isinstance(one, str)])
ANY = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
"""JSON as Python reads it, with what the standard does not have: NaN, numbers of any length, half a character."""


@contextmanager
def refused(*kinds: type[Exception], longest: int = LONGEST) -> Iterator[None]:
    """Ends well, or in one of these with a sentence that is not too long: all else is a defect."""
    try:
        yield
    except kinds as error:
        assert 0 < len(str(error)) <= longest, error  # noqa: PT017
    except Exception as error:
        pytest.fail(f"{type(error).__name__}: {error}", pytrace=True)


@st.composite
def spoiled(draw: st.DrawFn, good: Any) -> Any:
    """JSON with up to three of its values replaced, or taken away."""
    value = deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        ways = list(_ways(value))
        if not ways:
            return value
        *above, last = draw(st.sampled_from(ways))
        holder = value
        for step in above:
            holder = holder[step]
        if draw(st.integers(0, 5)) == 0:
            del holder[last]
        else:
            holder[last] = deepcopy(draw(ANY))
    return value


def _ways(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*here, key)
        yield from _ways(item, (*here, key))


@st.composite
def mangled(draw: st.DrawFn, good: bytes) -> bytes:
    """Bytes that are cut off, or have others in some of their places."""
    value = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(value)))
        if draw(st.booleans()):
            value[at : at + draw(st.integers(0, 30))] = draw(st.binary(max_size=12) | st.sampled_from(BYTES))
        else:
            value = value[:at] if draw(st.integers(0, 3)) == 0 else value
    return bytes(value)


BYTES = (b"NaN", b"1e999", b"9" * 5000, b"\xff\xfe", b"\0", b'"', b"\n", b"{}", b"-1")


def said(value: Any) -> str:
    """As JSON, with numbers that are none and halves of characters."""
    return json.dumps(value)


def text_of(good: bytes) -> st.SearchStrategy[str]:
    """The same of a text; also one that the parsers of JSON and YAML cannot go down into, and none at all."""
    odd = st.sampled_from((b"", b"[" * 20_000, b'{"a":' * 20_000)) | st.binary(max_size=60)
    return (mangled(good) | odd).map(lambda value: value.decode(errors="replace"))
