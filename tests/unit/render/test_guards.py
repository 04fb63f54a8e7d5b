"""Network policies and disruption budgets."""

from dataclasses import replace
from typing import Any

from tests.support.example import DEPLOYED, RUN, arm, run, server
from tests.support.several_nodes import over

from paceline.core.manifest import Manifest
from paceline.render import revision_of, round_job
from paceline.render.common import Settings
from paceline.render.guards import disruption_budget, rounds_network, servers_network
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE


def within(selector: Manifest, labels: Manifest) -> bool:
    return selector["matchLabels"].items() <= labels.items()


def of_server() -> Manifest:
    settings = Settings(image="paceline")
    return template(DEPLOYED, "latency", server(), arm("wide"), revision_of(server(), arm("wide")), settings)[
        "metadata"
    ]


def of_round() -> Manifest:
    asked = round_plan(RUN, run(), run().arms, 0, 0)
    made = round_job(RUN, run(), asked, ANYWHERE, Settings(image="paceline"))
    return made["spec"]["template"]["metadata"]


def test_a_server_is_reached_at_its_port_alone() -> None:
    spec = servers_network(DEPLOYED, "latency", [server()])["spec"]
    assert within(spec["podSelector"], of_server()["labels"])
    assert not within(spec["podSelector"], of_round()["labels"])
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [{"ports": [{"port": 30000, "protocol": "TCP"}]}]


def test_a_sidecar_is_reached_at_the_ports_that_it_declares() -> None:
    sidecar: dict[str, Any] = {
        "name": "proxy",
        "ports": [{"containerPort": 8443}, {"containerPort": 53, "protocol": "UDP"}],
    }
    asked = replace(server(), engine=replace(server().engine, pod_template={"spec": {"containers": [sidecar]}}))
    (rule,) = servers_network(DEPLOYED, "latency", [asked])["spec"]["ingress"]
    assert rule["ports"][1:] == [{"port": 8443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]


def test_the_nodes_of_one_server_reach_each_other() -> None:
    spec = servers_network(DEPLOYED, "latency", [over(2)])["spec"]
    assert spec["ingress"][1:] == [{"from": [{"podSelector": spec["podSelector"]}]}]


def test_nothing_reaches_a_round_and_it_reaches_nothing_but_names() -> None:
    spec = rounds_network(RUN, "latency")["spec"]
    assert within(spec["podSelector"], of_round()["labels"])
    assert not within(spec["podSelector"], of_server()["labels"])
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in spec
    assert [port["port"] for rule in spec["egress"] for port in rule["ports"]] == [53, 53]


def test_a_drain_takes_one_server_at_a_time_and_the_only_one_too() -> None:
    """minAvailable would keep a drain of a pool of one waiting for ever."""
    spec = disruption_budget(DEPLOYED, "latency")["spec"]
    assert within(spec["selector"], of_server()["labels"])
    assert not within(spec["selector"], of_round()["labels"])
    assert (spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
