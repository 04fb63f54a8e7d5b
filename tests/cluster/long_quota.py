"""A quota refuses pods, and the cluster's own words say so. It takes minutes: `make test-all`."""

import pytest
from tests.cluster.example import small
from tests.cluster.test_refused import SOON
from tests.support.kubernetes import GPU, Manifest, Namespace, condition, says
from tests.support.queries import served, stalled

LIFTED = 100
"""Seconds in which what was refused serves: its pod is asked for once a minute, and starts."""


def quota(gpus: int) -> Manifest:
    hard = {f"requests.{GPU}": str(gpus)}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "nogpu"}, "spec": {"hard": hard}}


@pytest.mark.timeout(300)
def test_a_quota_refuses_the_servers_and_then_the_rounds(here: Namespace, hub: str) -> None:
    here.apply(quota(0))
    here.apply(small("poor", hub, promotion=SOON))
    here.wait("the refusal to be told", lambda: says(here.get("specdep", "poor"), "Ready", "False", "PodRefused"), 60)
    assert "exceeded quota: nogpu" in message(here, "Ready")
    here.wait("Stalled", stalled(here, "poor"), 120)
    assert says(here.get("specdep", "poor"), "Stalled", "True", "PodRefused")
    assert condition(here.get("specdep", "poor"), "Reconciling") is None
    assert "Stalled:PodRefused" in here.kubectl("get", "specdep", "poor")

    here.apply(quota(1))  # enough to be served, and not to be measured beside it
    here.wait("the baseline to be served", served(here, "poor", "baseline"), LIFTED)
    here.wait(
        "the round's refusal to be told",
        lambda: says(here.get("specdep", "poor"), "Measuring", "False", "PodRefused"),
        90,
    )
    assert "exceeded quota: nogpu" in message(here, "Measuring")


def message(here: Namespace, kind: str) -> str:
    return str((condition(here.get("specdep", "poor"), kind) or {}).get("message"))
