"""Results that are kept: computed once for equal arguments, and forgotten in the order in which they came."""

from dataclasses import dataclass

from paceline.core.kept import by_identity, by_value


@dataclass(frozen=True, slots=True)
class Arm:
    args: dict[str, str]


def test_equal_arguments_are_computed_once_and_others_anew():
    asked = []

    @by_value(2)
    def hashed(arm: Arm) -> str:
        asked.append(arm)
        return "".join(arm.args)

    assert [hashed(Arm({"a": "1"})), hashed(Arm({"a": "1"})), hashed(Arm({"b": "1"}))] == ["a", "a", "b"]
    assert len(asked) == 2
    hashed(Arm({"c": "1"}))
    hashed(Arm({"b": "1"}))
    assert len(asked) == 3, "the last two are kept"
    hashed(Arm({"a": "1"}))
    assert len(asked) == 4, "the first had to make room"


def test_an_error_is_not_kept():
    tries = []

    @by_value(2)
    def fails(value: int) -> int:
        tries.append(value)
        if len(tries) == 1:
            raise ValueError
        return value

    try:
        fails(7)
    except ValueError:
        assert fails(7) == 7


def test_by_identity_an_equal_object_is_another_one():
    asked = []

    @by_identity(1)
    def hashed(arm: Arm) -> int:
        asked.append(arm)
        return len(asked)

    first = Arm({"a": "1"})
    assert [hashed(first), hashed(first), hashed(Arm({"a": "1"})), hashed(first)] == [1, 1, 2, 3]
