"""`paceline validate` and the API server agree: an object is right for both, or wrong for both."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from tests.api.objects import objects
from tests.api.test_refusals import dry_run
from tests.support.apiserver import Running

from paceline.api import problems

OBJECTS = 1500


def test_desk_and_server_agree(apiserver: Running) -> None:
    """But for what the desk alone can see. Enough of them are right, and enough wrong."""
    seen = Counter[str]()

    @settings(max_examples=OBJECTS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(objects())
    def agree(manifest: dict[str, Any]) -> None:
        answer = dry_run(apiserver, manifest)
        found = problems(manifest)
        if answer.get("status") == "Failure":
            assert found, answer["message"]
        else:
            assert [str(problem) for problem in found if not problem.desk] == []
        seen["wrong" if found else "right"] += 1

    agree()
    assert seen.total() >= 500
    assert min(seen["right"], seen["wrong"]) >= 100, seen
