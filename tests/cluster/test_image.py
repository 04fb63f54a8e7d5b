"""The image is without the generated models of `kubernetes`: what is used of that package works without them."""

from tests.support.kubernetes import Namespace

PLUGIN = """
import json, pathlib
token = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/token").read_text()
print(json.dumps(
    {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
))
"""
LISTS_PODS = f"""
import asyncio, json, pathlib, sys
from paceline.kube import connect
from paceline.kube.resources import POD
import kubernetes.aio.client.models as models

account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
cluster = {{"server": "https://kubernetes.default.svc", "certificate-authority": str(account / "ca.crt")}}
plugin = {{
    "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": sys.executable,
    "args": ["-c", {PLUGIN!r}],
}}
pathlib.Path("/tmp/kubeconfig").write_text(json.dumps({{
    "apiVersion": "v1", "kind": "Config", "current-context": "c",
    "clusters": [{{"name": "c", "cluster": cluster}}],
    "users": [{{"name": "u", "user": {{"exec": plugin}}}}],
    "contexts": [{{"name": "c", "context": {{"cluster": "c", "user": "u"}}}}],
}}))

async def main():
    async with await connect("/tmp/kubeconfig") as transport:
        listed = await transport.list(POD, (account / "namespace").read_text())
    print(*(pod["metadata"]["name"] for pod in listed.items))

asyncio.run(main())
print(len(list(pathlib.Path(models.__file__).parent.glob("*.py"))))
"""


def test_pods_are_listed_by_a_kubeconfig_with_an_exec_plugin(here: Namespace) -> None:
    here.kubectl("create", "serviceaccount", "viewer")
    here.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", f"--serviceaccount={here.name}:viewer")
    container = {"name": "c", "image": "localhost/paceline:dev", "imagePullPolicy": "Never"}
    spec = {
        "serviceAccountName": "viewer",
        "restartPolicy": "Never",
        "containers": [container | {"command": ["python", "-c", LISTS_PODS]}],
    }
    here.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lists"}, "spec": spec})
    here.wait("the pod to end", lambda: here.get("pod", "lists")["status"]["phase"] in ("Succeeded", "Failed"), 60)
    assert here.kubectl("logs", "lists").split() == ["lists", "1"]
