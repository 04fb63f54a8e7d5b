"""What the cluster refuses of pods is told in its own words: within a minute, and Stalled at the deadline."""

import pytest
from tests.cluster.example import small
from tests.support.kubernetes import Namespace, condition, says
from tests.support.queries import stalled

SOON = {"progressDeadline": "1m"}
"""So that Stalled comes within two minutes."""


@pytest.mark.timeout(300)
def test_pod_security_refuses_the_servers(here: Namespace, hub: str) -> None:
    """An engine's image runs as root; our own pods are let in."""
    here.kubectl("label", "namespace", here.name, "pod-security.kubernetes.io/enforce=restricted")
    here.apply(small("safe", hub, promotion=SOON))
    here.wait("the refusal to be told", lambda: says(here.get("specdep", "safe"), "Ready", "False", "PodRefused"), 90)
    here.wait("Stalled", stalled(here, "safe"), 120)
    assert says(here.get("specdep", "safe"), "Stalled", "True", "PodRefused")
    said = condition(here.get("specdep", "safe"), "Stalled")
    assert said is not None
    assert 'violates PodSecurity "restricted' in said["message"]
