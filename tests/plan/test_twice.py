"""In every pass of every story: the order of what is read does not matter, and what was done is not planned again."""

import pytest
from tests.support.stories import Tell, every_story, name_of, played


@pytest.mark.parametrize("tell", every_story(), ids=name_of)
def test_a_plan_depends_on_no_order_and_is_done_in_one_pass(tell: Tell) -> None:
    assert (played(tell).by_order, played(tell).again) == ([], [])
