"""In every pass of every story: the order of what is read does not matter, and what was done is not planned again."""

import pytest
from tests.support.stories import Tell, every_story, name_of, played

IN_TWO_PASSES = {
    "a_namespace_that_is_restored_comes_to_the_same_servers": "nothing is written before its children are its own",
    "an_owner_that_was_restored_adopts_what_names_it": "nothing is written before its children are its own",
    "an_api_server_drops_volumes_of_images": "what it drops is applied again, as it may be let by then",
    "an_autoscalers_pool_that_waits_for_its_verdict": "servers of none are given one before the autoscaler has them",
}


@pytest.mark.parametrize("tell", list(every_story()), ids=name_of)
def test_a_plan_depends_on_no_order_and_is_done_in_one_pass(tell: Tell) -> None:
    assert played(tell).by_order == []
    assert bool(played(tell).again) is (name_of(tell) in IN_TWO_PASSES), played(tell).again
