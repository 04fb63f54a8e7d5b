"""examples/qwen3-8b-no-thinking.yaml on the cluster: one argument more than its neighbours in test_examples.py."""

from tests.cluster import test_examples as examples
from tests.support.kubernetes import Namespace

THINKING = '--default-chat-template-kwargs={"enable_thinking": false}'


def test_without_thinking(here: Namespace, hub: str) -> None:
    case = examples.Case(example="qwen3-8b-no-thinking", argument=THINKING, over=examples.H200)
    examples.test_an_example_comes_to_its_verdict(here, hub, case)
