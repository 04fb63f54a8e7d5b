"""Routes from outside to a pool's servers: an HTTPRoute, and an InferencePool instead of the Service."""

from paceline.core import EndpointPickerReference, Gateway, Server
from paceline.core.gateway import ParentReference
from paceline.core.manifest import Manifest
from paceline.core.names import child_name
from paceline.engines import ENGINES
from paceline.render.common import Owner, metadata
from paceline.render.group import LEADER
from paceline.render.serving import SERVICE_PORT, labels

HTTP_ROUTE, INFERENCE_POOL = "HTTPRoute", "InferencePool"
GATEWAY_GROUP, INFERENCE_GROUP = "gateway.networking.k8s.io", "inference.networking.k8s.io"

UNLIMITED = {"request": "0s"}
"""Disables the gateway's own limit (Gateway API, HTTPRouteTimeouts; support is Extended). Otherwise an implementation's
default applies, which with Envoy is 15 s for the whole answer (route timeout)."""


def http_route(owner: Owner, pool: str, gateway: Gateway, value: str, *, picked: bool) -> Manifest:
    """Routes requests with this header value to the pool; to its InferencePool if an endpoint is `picked`."""
    name = child_name(owner.name, pool)
    service = {"group": "", "kind": "Service", "name": name, "port": SERVICE_PORT, "weight": 1}
    picking = {"group": INFERENCE_GROUP, "kind": INFERENCE_POOL, "name": name, "weight": 1}
    match = {
        "path": {"type": "PathPrefix", "value": "/"},
        "headers": [{"type": "Exact", "name": gateway.header, "value": value}],
    }
    return {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": HTTP_ROUTE,
        "metadata": metadata(name, owner, labels(owner, pool)),
        "spec": {
            "parentRefs": list(map(_parent, gateway.parent_refs)),
            **({"hostnames": list(gateway.hostnames)} if gateway.hostnames else {}),
            "rules": [{"matches": [match], "backendRefs": [picking if picked else service], "timeouts": UNLIMITED}],
        },
    }


def _parent(of: ParentReference) -> Manifest:
    parent = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": of.name}
    parent |= {"namespace": of.namespace} if of.namespace else {}
    return parent | ({"sectionName": of.section_name} if of.section_name else {})


def inference_pool(owner: Owner, pool: str, server: Server, picker: EndpointPickerReference) -> Manifest:
    """The pool's servers, for an endpoint picker to choose from; for servers on several nodes, the pods that answer."""
    among = labels(owner, pool)
    answering = LEADER if server.accelerator.nodes > 1 else {}
    return {
        "apiVersion": f"{INFERENCE_GROUP}/v1",
        "kind": INFERENCE_POOL,
        "metadata": metadata(child_name(owner.name, pool), owner, among),
        "spec": {
            "selector": {"matchLabels": {**among, **answering}},
            "targetPorts": [{"number": ENGINES[server.engine.type].port}],
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": picker.name,
                "port": {"number": picker.port.number},
                "failureMode": picker.failure_mode,
            },
        },
    }
