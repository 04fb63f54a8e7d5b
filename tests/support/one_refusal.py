"""What an adapter refuses of a server and one arm."""

from paceline.core import Arm, Server
from paceline.engines.adapter import Adapter


def refusal_message(adapter: Adapter, server: Server, arm: Arm, rule: str, path: str) -> str:
    """The message of the only refusal, which is by this rule and names this path."""
    (refusal,) = adapter.refusals(server, (arm,))
    assert (refusal.rule, refusal.path) == (rule, path)
    assert refusal.arm == (None if path.startswith("engine.") else arm.name)
    return refusal.message
