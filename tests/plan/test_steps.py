"""The steps of the rollout are found where the planner's docstring says."""

import re

from paceline.plan import deployment

STEPS = [step.__name__ for step in (*deployment.STEPS, *deployment.POOL_STEPS, *deployment.ALWAYS_LAST)]


def test_the_docstring_lists_all_steps_in_their_order() -> None:
    assert re.findall(r"^    (\w+) +\S", deployment.__doc__ or "", re.MULTILINE) == STEPS
