"""What nothing acts on yet is refused, field by field."""

from collections.abc import Iterator
from typing import Any

import pytest

from paceline.api.crd import KINDS
from paceline.api.later import NOT_YET, Later
from paceline.api.model import Model
from paceline.api.reference import blocks

SAID = {
    "capacityPolicy": "Borrow",
    "action": "Notify",
    "purpose": "Search",
}
"""Of the fields of which some values are acted on, one that is not."""


def models() -> dict[str, type[Model]]:
    return {model.__name__: model for kind in KINDS.values() for model in blocks(kind.spec)}


def entries() -> Iterator[Any]:
    for model, listed in NOT_YET.items():
        for later in listed:
            yield pytest.param(models()[model], later, id=f"{model}.{later.field}")


@pytest.mark.parametrize(("model", "later"), list(entries()))
def test_it_is_refused_with_what_to_write_instead(model: type[Model], later: Later) -> None:
    rule = later.rule()
    assert rule in model.rules
    ((path, message),) = rule.findings({later.field: SAID.get(later.field, "something")})
    assert path == f".{later.field}"
    assert message.endswith(f"is not in this release: {later.instead}")
    assert list(rule.findings({})) == []
