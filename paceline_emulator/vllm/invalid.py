"""How vLLM refuses a value of its configuration: pydantic's exception, whose last line is a link and no reason."""

from collections.abc import Iterator
from contextlib import contextmanager

LINK = "    For further information visit https://errors.pydantic.dev/2.14/v/"
ALL = "input_value=ArgsKwargs((), {'method':...very_timeout_sec=120))}), input_type=ArgsKwargs"
"""Of a refusal that is not of one field: the whole configuration, its middle left out."""


class ValidationError(ValueError):
    __module__ = "pydantic_core._pydantic_core"  # what a traceback calls it


def of_field(config: str, field: str, kind: str, message: str, value: object) -> ValidationError:
    of = f"[type={kind}, input_value={value!r}, input_type={type(value).__name__}]"
    return ValidationError(f"1 validation error for {config}\n{field}\n  {message} {of}\n{LINK}{kind}")


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
