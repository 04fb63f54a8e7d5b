"""Every test here runs twice: on the API server in memory and on a real kube-apiserver with etcd."""

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support import apiserver
from tests.support.memory import Cluster, MemoryApi

from paceline.kube import Api, Manifest, Ref, Resource, connect, kinds

WIDGET = Resource("conformance.paceline.dev", "v1", "widgets", "Widget")
KINDS = kinds(WIDGET)


def _list_map(key: str, **properties: str) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "items": {
            "type": "object",
            "required": [key],
            "properties": {name: {"type": kind} for name, kind in {key: "string", **properties}.items()},
        },
    }


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "color": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "options": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
                "pools": _list_map("name", replicas="integer", note="string"),
            },
        },
        "status": {
            "type": "object",
            "properties": {"phase": {"type": "string"}, "conditions": _list_map("type", status="string")},
        },
    },
}

CRD: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{WIDGET.plural}.{WIDGET.group}"},
    "spec": {
        "group": WIDGET.group,
        "scope": "Namespaced",
        "names": {"plural": WIDGET.plural, "singular": "widget", "kind": WIDGET.kind},
        "versions": [
            {
                "name": WIDGET.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}

NAMESPACES = count(1)


@dataclass(frozen=True)
class Place:
    """An API and a namespace of one's own in it, with shorthands for widgets."""

    api: Api
    namespace: str

    def ref(self, name: str = "w") -> Ref:
        return Ref(WIDGET, self.namespace, name)

    def widget(self, name: str = "w", **parts: Any) -> Manifest:
        """`labels`, `annotations`, `finalizers`, `uid` and `resourceVersion` are metadata, `status` is what it is,
        the rest is spec."""
        metadata = {"labels", "annotations", "finalizers", "uid", "resourceVersion"} & parts.keys()
        spec = {key: value for key, value in parts.items() if key not in metadata | {"status"}}
        return {
            "apiVersion": WIDGET.api_version,
            "kind": WIDGET.kind,
            "metadata": {"namespace": self.namespace, "name": name, **{key: parts[key] for key in metadata}},
            **({"spec": spec} if spec else {}),
            **({"status": parts["status"]} if "status" in parts else {}),
        }

    async def apply(self, name: str = "w", *, by: str = "one", force: bool = True, **parts: Any) -> Manifest:
        return await self.api.apply(self.widget(name, **parts), manager=by, force=force)

    async def replace_status(self, name: str = "w", **parts: Any) -> Manifest:
        return await self.api.replace_status(self.widget(name, **parts))

    async def get(self, name: str = "w") -> Manifest:
        found = await self.api.get(self.ref(name))
        assert found is not None
        return found


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a real API server that knows widgets."""
    running = apiserver.start(tmp_path_factory.mktemp("apiserver"))
    try:
        running.kubectl("apply", "-f", "-", given=CRD)
        running.kubectl("wait", "--for=condition=Established", f"crd/{CRD['metadata']['name']}")
        until = time.monotonic() + 30
        while running.kubectl("get", WIDGET.plural, check=False).returncode and time.monotonic() < until:
            time.sleep(0.2)
        yield running.kubeconfig
    finally:
        running.stop()


@pytest.fixture(params=["memory", "real"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    name = f"test-{next(NAMESPACES)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    if request.param == "memory":
        memory = MemoryApi(Cluster(kinds=KINDS, crds=[CRD]))
        await memory.create(namespace)
        yield Place(memory, name)
    else:
        async with await connect(str(request.getfixturevalue("server")), kinds=KINDS) as api:
            await api.create(namespace)
            yield Place(api, name)
