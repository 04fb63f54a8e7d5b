"""Fields and values that are not implemented are refused, one by one."""

from collections.abc import Iterator
from typing import Any

import pytest

from paceline.api.crd import KINDS
from paceline.api.model import Model
from paceline.api.reference import blocks
from paceline.api.unimplemented import UNIMPLEMENTED, Unimplemented

VALUES = {
    "purpose": "Search",
}
"""Where only some values of a field are refused, one of them."""


def models() -> dict[str, type[Model]]:
    return {model.__name__: model for kind in KINDS.values() for model in blocks(kind.spec)}


def entries() -> Iterator[Any]:
    for model, listed in UNIMPLEMENTED.items():
        for field in listed:
            yield pytest.param(models()[model], field, id=f"{model}.{field.field}")


@pytest.mark.parametrize(("model", "field"), list(entries()))
def test_it_is_refused_with_what_to_write_instead(model: type[Model], field: Unimplemented) -> None:
    rule = field.rule()
    assert rule in model.rules
    ((path, message),) = rule.findings({field.field: VALUES.get(field.field, "something")})
    assert path == f".{field.field}"
    assert message.endswith(f"is not in this release: {field.instead}")
    assert list(rule.findings({})) == []
