"""How vLLM refuses a value of its configuration: pydantic's exception, whose last line is a link and no reason."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

LINK = "    For further information visit https://errors.pydantic.dev/2.14/v/"
ALL = "input_value=ArgsKwargs((), {'method':...very_timeout_sec=120))}), input_type=ArgsKwargs"
"""Of a refusal that is not of one field: the whole configuration, its middle left out."""


class ValidationError(ValueError):
    __module__ = "pydantic_core._pydantic_core"  # what a traceback calls it


class Fault(NamedTuple):
    """pydantic's kind of error, and its message."""

    kind: str
    message: str


def of_fields(config: str, faults: Iterable[tuple[str, Fault, object]]) -> None:
    """Raises what tells each field with its fault and its value; nothing where there is none."""
    found = list(faults)
    if not found:
        return
    count = f"{len(found)} validation error{'s' if len(found) > 1 else ''}"
    told = [
        f"{field}\n  {fault.message} [type={fault.kind}, input_value={value!r}, input_type={type(value).__name__}]\n"
        f"{LINK}{fault.kind}"
        for field, fault, value in found
    ]
    raise ValidationError("\n".join([f"{count} for {config}", *told]))


@contextmanager
def checking(config: str) -> Iterator[None]:
    """A ValueError of its checks becomes pydantic's; any other exception goes through."""
    try:
        yield
    except ValidationError:
        raise
    except ValueError as problem:
        said = f"  Value error, {problem} [type=value_error, {ALL}]"
        raise ValidationError(f"1 validation error for {config}\n{said}\n{LINK}value_error") from None
