"""The chart's policies on a real API server: what the right to make our kinds is worth, and to whom."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.chart import HOME, of_kind, rendered
from tests.support.apiserver import Running
from tests.support.edits import Change, changed, example, example_run
from tests.support.messages import Says

from paceline.api import crds
from paceline.plan.deployment.requests import VERBS

TENANT, FREE, STRICT = "tenant-b", "tenant-free", "tenant-strict"
OPERATOR = f"system:serviceaccount:{HOME}:paceline"
PLURALS = {"SpeculativeDeployment": "speculativedeployments", "BenchmarkRun": "benchmarkruns"}
MAY_MAKE_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}
"""Of the built-in edit, what counts here."""
USERS: dict[str, list[dict[str, Any]]] = {
    "mallory": [],
    "eve": [MAY_MAKE_PODS],
    "rita": [
        MAY_MAKE_PODS,
        {"apiGroups": ["gateway.networking.k8s.io"], "resources": ["httproutes"], "verbs": ["create"]},
        {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": ["create"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaimtemplates"], "verbs": ["create"]},
    ],
    "pat": [
        MAY_MAKE_PODS,
        {"apiGroups": ["paceline.dev"], "resources": list(PLURALS.values()), "verbs": ["promote"]},
    ],
    OPERATOR: [],
}
"""Each has the rules of paceline-edit, and these."""
PROMOTE = {"promote.paceline.dev/latency": "abc@1"}
START_SECONDS = 60


@pytest.fixture(scope="module")
def guarded(apiserver: Running) -> Iterator[Running]:
    """Policies in two namespaces, the stricter ones in the second; in a third namespace there are none."""
    usual = rendered(namespaces=[TENANT])
    strict = rendered(
        namespaces=[STRICT],
        admission__trustRemoteCode=False,
        admission__hostPath=False,
        admission__images=["registry.example.com/models/"],
    )
    policies = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    objects = [*of_kind(usual, *policies, "ClusterRole"), *(_renamed(one) for one in of_kind(strict, *policies))]
    for namespace in (TENANT, FREE, STRICT):
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        objects += [one for user, rules in USERS.items() for one in _bound(namespace, user, rules)]
    given = {"apiVersion": "v1", "kind": "List", "items": objects}
    apiserver.kubectl("apply", "--server-side", "-f", "-", given=given)
    try:
        _wait_until_they_act(apiserver)
        yield apiserver
    finally:
        apiserver.kubectl("delete", "-f", "-", "--wait=false", given=given)


def _renamed(one: dict[str, Any]) -> dict[str, Any]:
    name = {"metadata": {**one["metadata"], "name": f"strict-{one['metadata']['name']}"}}
    spec = one["spec"] | ({"policyName": f"strict-{one['spec']['policyName']}"} if "policyName" in one["spec"] else {})
    return {**one, **name, "spec": spec}


def _bound(namespace: str, user: str, rules: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    name = user.replace(":", ".")
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "name": user, "apiGroup": rbac}
    where = {"name": name, "namespace": namespace}
    yield {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": where, "rules": rules}
    for role, kind in ((f"{HOME}-paceline-edit", "ClusterRole"), (name, "Role")):
        yield {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"{name}.{role}", "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": kind, "name": role},
            "subjects": [subject],
        }


def _wait_until_they_act(apiserver: Running) -> None:
    until = time.monotonic() + START_SECONDS
    for namespace in (TENANT, STRICT):
        while send(apiserver, "mallory", example(), namespace=namespace) == "":
            assert time.monotonic() < until, f"no policy acts in {namespace}"
            time.sleep(0.2)


def send(
    apiserver: Running,
    user: str,
    manifest: dict[str, Any],
    *,
    namespace: str = TENANT,
    over: bool = False,
    dry: bool = True,
) -> str:
    """Why it is refused, in the policy's own words; empty where it is taken. `over`: in place of the stored one."""
    metadata = {**manifest["metadata"], "namespace": namespace}
    path = f"/apis/paceline.dev/v1alpha1/namespaces/{namespace}/{PLURALS[manifest['kind']]}"
    if over:
        path += f"/{metadata['name']}"
        metadata["resourceVersion"] = apiserver.request("GET", path)["metadata"]["resourceVersion"]
    answer = apiserver.request(
        "PUT" if over else "POST", f"{path}?dryRun=All" if dry else path, {**manifest, "metadata": metadata}, user=user
    )
    return str(answer["message"]).rpartition(" denied request: ")[2] if answer["kind"] == "Status" else ""


def annotated(manifest: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def with_template(manifest: dict[str, Any], template: Any) -> dict[str, Any]:
    spec = manifest["spec"]
    return {**manifest, "spec": {**spec, "engine": {**spec["engine"], "podTemplate": template}}}


def projected(**source: Any) -> dict[str, Any]:
    return {"spec": {"volumes": [{"name": "t", "projected": {"sources": [source]}}]}}


@pytest.mark.parametrize("manifest", [example(), example_run()], ids=lambda manifest: manifest["kind"])
def test_who_may_not_make_pods_may_not_have_them_made(guarded: Running, manifest: dict[str, Any], says: Says) -> None:
    says(said := send(guarded, "mallory", manifest))
    assert "mallory may not create pods" in said
    assert send(guarded, "eve", manifest) == ""
    assert send(guarded, OPERATOR, manifest) == "", "the operator makes runs, and no pod by itself"


CLAIMED: Change = ("spec.accelerator.deviceClassName", "gpu.example.com")


@pytest.mark.parametrize(
    ("of", "change", "kind"),
    [
        (example(), ("spec.gateway", {"parentRefs": [{"name": "inference"}]}), "httproutes"),
        (example(), ("spec.pools.0.endpointPickerRef", {"name": "picker"}), "inferencepools"),
        (example(), CLAIMED, "resourceclaimtemplates"),
        (example_run(), CLAIMED, "resourceclaimtemplates"),
    ],
    ids=["gateway", "endpointPickerRef", "devices", "devices of a run"],
)
def test_who_may_not_make_an_object_may_not_have_it_made(
    guarded: Running, of: dict[str, Any], change: Change, kind: str, says: Says
) -> None:
    manifest = changed(of, change)
    says(said := send(guarded, "eve", manifest))
    assert kind in said
    assert send(guarded, "rita", manifest) == ""


def test_nor_may_they_change_what_another_has_made(guarded: Running) -> None:
    manifest = example()
    guarded.request("POST", _collection(TENANT), _in(TENANT, manifest))
    try:
        other = {**manifest, "spec": {**manifest["spec"], "suspend": True}}
        assert "mallory" in send(guarded, "mallory", other, over=True)
        assert send(guarded, "eve", other, over=True) == ""
        assert send(guarded, "mallory", annotated(manifest, {"team": "b"}), over=True) == "", "no pod comes of that"
    finally:
        guarded.request("DELETE", f"{_collection(TENANT)}/{manifest['metadata']['name']}")


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "patch", "update", "delete"])
def test_who_may_edit_may_read_what_they_edit(guarded: Running, verb: str) -> None:
    """By paceline-edit alone: `kubectl apply` reads before it writes."""
    for plural in PLURALS.values():
        asked = {"namespace": TENANT, "verb": verb, "group": "paceline.dev", "resource": plural}
        review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        spec = {"user": "mallory", "resourceAttributes": asked}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert guarded.request("POST", path, {**review, "spec": spec})["status"]["allowed"]


def test_promoting_is_a_right_of_its_own(guarded: Running, says: Says) -> None:
    manifest = example()
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    guarded.request("POST", _collection(TENANT), _in(TENANT, annotated(manifest, {"promote.paceline.dev/deep": "x@1"})))
    try:
        asked = annotated(manifest, {"promote.paceline.dev/deep": "x@1", **PROMOTE})
        says(send(guarded, "eve", asked, over=True))
        assert send(guarded, "pat", asked, over=True) == ""
        again = annotated(manifest, {"promote.paceline.dev/deep": "x@1", "retry.paceline.dev/latency": "1"})
        assert "verb promote" in send(guarded, "eve", again, over=True)
        for verb in VERBS:
            one = annotated(manifest, {"promote.paceline.dev/deep": "x@1", f"{verb}.paceline.dev/latency": "@1"})
            assert "verb promote" in send(guarded, "eve", one, over=True), verb
            assert send(guarded, "pat", one, over=True) == "", verb
        assert "verb promote" in send(guarded, "eve", manifest, over=True), "taken away"
        automatic = {**manifest, "spec": {**manifest["spec"], "promotion": {"mode": "Automatic"}}}
        kept = annotated(automatic, {"promote.paceline.dev/deep": "x@1"})
        assert "promotion.mode" in send(guarded, "eve", kept, over=True)
        assert send(guarded, "pat", kept, over=True) == ""
        edited = annotated(
            {**manifest, "spec": {**manifest["spec"], "suspend": True}}, {"promote.paceline.dev/deep": "x@1"}
        )
        assert send(guarded, "eve", edited, over=True) == "", "an edit asks for nothing of the kind"
    finally:
        guarded.request("DELETE", f"{_collection(TENANT)}/{manifest['metadata']['name']}")


def test_to_bring_evidence_along_is_to_promote(guarded: Running, says: Says) -> None:
    """Its author wrote the numbers, and a pool may promote on them."""
    run = example_run()
    brings = {**run, "spec": {**run["spec"], "measured": {"machine": "desk", "rounds": 1}}}
    assert send(guarded, "eve", run) == ""
    says(said := send(guarded, "eve", brings))
    assert "spec.measured" in said
    assert send(guarded, "pat", brings) == ""


def test_a_new_object_that_asks_to_be_promoted_is_asked_the_same(guarded: Running) -> None:
    assert "verb promote" in send(guarded, "eve", annotated(example(), PROMOTE))
    assert send(guarded, "pat", annotated(example(), PROMOTE)) == ""


@pytest.mark.parametrize(
    ("template", "place"),
    [
        (projected(serviceAccountToken={"path": "t"}), "engine.podTemplate.spec.volumes "),
        (projected(podCertificate={"keyType": "ED25519"}), "engine.podTemplate.spec.volumes "),
        ({"spec": {"priorityClassName": "system-node-critical"}}, "engine.podTemplate.spec "),
        ({"spec": {"priority": 2_000_000_000}}, "engine.podTemplate.spec "),
        ({"metadata": {"annotations": {"a": "x" * 66_000}}}, "engine.podTemplate "),
        ({"metadata": {"annotations": {f"a{i}": "x" * 90 for i in range(800)}}}, "engine.podTemplate "),
        ({"spec": {"hostAliases": [{"ip": "a"}] * 20_000}}, "engine.podTemplate "),
    ],
    ids=["token", "certificate", "system", "priority", "long", "much", "many"],
)  # fmt: skip
def test_what_no_server_needs_is_refused_whoever_asks(guarded: Running, template: Any, place: str, says: Says) -> None:
    (why,) = {
        send(guarded, user, with_template(manifest, template))
        for manifest in (example(), example_run()) for user in ("pat", OPERATOR)
    }  # fmt: skip
    assert why.startswith(place)
    says(why)


@pytest.mark.parametrize("levels", [14, 900, 9000])
def test_what_is_nested_too_deep_is_refused(guarded: Running, levels: int) -> None:
    """The operator's parser would give up at about 1,000; the API server takes 10,000."""
    assert "too deep" in send_nested(guarded, levels)


def send_nested(apiserver: Running, levels: int) -> str:
    """As text: the standard library nests no deeper than itself."""
    manifest = with_template(_in(TENANT, example()), "HERE")
    body = json.dumps(manifest).replace('"HERE"', '{"a":' * levels + '"x"' + "}" * levels)
    answer = apiserver.request("POST", f"{_collection(TENANT)}?dryRun=All", body.encode(), user="pat")
    return str(answer["message"]) if answer["kind"] == "Status" else ""


def test_the_deepest_that_a_pod_can_be_passes(guarded: Running) -> None:
    term = {
        "topologyKey": "a",
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
    }
    apart = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    claim = {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}
    template = {"spec": {"affinity": {"podAntiAffinity": apart}, "volumes": [volume], "priorityClassName": "mine"}}
    assert send(guarded, "eve", with_template(example(), template)) == ""


def test_a_large_one_passes(guarded: Running) -> None:
    """50,000 characters in 900 entries: what CEL may cost is enough for that."""
    env = [{"name": f"VARIABLE_{i}", "value": "x" * 140} for i in range(300)]
    template = {"spec": {"containers": [{"name": "server", "env": env}]}}
    assert send(guarded, "eve", with_template(example(), template)) == ""


def test_an_administrator_forbids_remote_code_directories_of_nodes_and_foreign_images(guarded: Running) -> None:
    manifest = example()
    ours = {"image": "registry.example.com/models/sglang:1", "trustRemoteCode": False}
    spec, engine = manifest["spec"], {**manifest["spec"]["engine"], **ours}

    def said(*, namespace: str = STRICT, **parts: Any) -> str:
        return send(guarded, "eve", {**manifest, "spec": {**spec, "engine": engine, **parts}}, namespace=namespace)

    def laid(pod: dict[str, Any]) -> dict[str, Any]:
        return {**engine, "podTemplate": {"spec": pod}}

    foreign = " registry.example.com/models/"
    refused = {
        "engine.trustRemoteCode": {"engine": {**engine, "trustRemoteCode": True}},
        "cache.hostPath": {"cache": {"hostPath": "/models"}},
        "engine.podTemplate.spec.volumes": {"engine": laid({"volumes": [{"name": "root", "hostPath": {"path": "/"}}]})},
    }
    assert said() == ""
    for place, parts in refused.items():
        assert said(**parts).startswith(f"{place} ")
        assert said(namespace=TENANT, **parts) == "", "forbidden there alone"
    assert foreign in said(engine={**engine, "image": "docker.io/else/sglang:1"})
    own = {**spec["candidates"][0], "engine": {"image": "docker.io/else/sglang:1", "version": "0.5.23"}}
    assert foreign in said(candidates=[own, *spec["candidates"][1:]])
    assert foreign in said(engine=laid({"containers": [{"name": "proxy", "image": "docker.io/else/proxy:1"}]}))
    assert foreign in said(engine=laid({"initContainers": [{"name": "first", "image": "docker.io/else/proxy:1"}]}))


ALLOWED = ("spec.engine.image", "registry.example.com/models/sglang:1"), ("spec.engine.trustRemoteCode", False)
"""What the strict namespace asks of the examples."""


def strictly(path: str, value: Any) -> dict[str, Any]:
    """The example as the strict namespace takes it, with one change."""
    return changed(example(), *ALLOWED, (path, value))


@pytest.mark.parametrize(
    "word",
    ["--trust-remote-code", "--trust_remote_code", "--trust-remote-code=true", "--trust-rem", "--trust", "--tru",
     "--tr", "--trust_re=1", "--config", "--config=/x.yaml", "--conf=/x"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["spec.engine.args", "spec.candidates.0.args", "spec.candidates.0.engine.args"])
def test_remote_code_is_forbidden_however_it_is_written_and_wherever(guarded: Running, path: str, word: str) -> None:
    assert send(guarded, "eve", strictly(path, ["--dtype=bfloat16"]), namespace=STRICT) == ""
    said = send(guarded, "eve", strictly(path, ["--dtype=bfloat16", word]), namespace=STRICT)
    assert "--trust-remote-code" in said
    run = changed(example_run(), *ALLOWED)
    where = path.replace("candidates.0", "arms.1")
    assert "--trust-remote-code" in send(guarded, "eve", changed(run, (where, [word])), namespace=STRICT)


@pytest.mark.parametrize(
    "pod",
    [
        {"volumes": [{"name": "i", "image": {"reference": "docker.io/else/x:1"}}]},
        {"containers": [{"name": "server", "image": "docker.io/else/x:1"}]},
        {"ephemeralContainers": [{"name": "debug", "image": "docker.io/else/x:1"}]},
        {"initContainers": [{"name": "s", "restartPolicy": "Always", "image": "docker.io/else/x:1"}]},
        {"containers": [{"name": "s", "image": "registry.example.com/models-of-others/x"}]},
        {"volumes": {"root": {"hostPath": {"path": "/"}}}},
    ],
    ids=["image volume", "server", "ephemeral", "sidecar", "another prefix", "a map of volumes"],
)
def test_no_other_part_of_a_pod_brings_a_foreign_image_or_a_directory(
    guarded: Running, pod: dict[str, Any], says: Says
) -> None:
    said = send(guarded, "eve", strictly("spec.engine.podTemplate", {"spec": pod}), namespace=STRICT)
    assert "engine.podTemplate" in said
    says(said)


SOURCES: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (example(), "spec.target", {"servedName": "qwen"}),
    (example(), "spec.draft", {"algorithm": "EAGLE3"}),
    (example(), "spec.candidates.0.draft", {"algorithm": "EAGLE3"}),
    (example_run(), "spec.target", {"servedName": "qwen", "revision": "main"}),
    (example_run(), "spec.arms.1.draft", {"algorithm": "EAGLE3", "revision": "main"}),
]


@pytest.mark.parametrize(
    ("manifest", "path", "model"), SOURCES, ids=[f"{one['kind']} {path}" for one, path, _ in SOURCES]
)
def test_a_model_that_is_an_image_is_of_an_allowed_registry_too(
    guarded: Running, manifest: dict[str, Any], path: str, model: dict[str, Any]
) -> None:
    def said(repository: str, namespace: str = STRICT) -> str:
        source = {"source": f"oci://{repository}@sha256:{'0' * 64}"}
        return send(guarded, "eve", changed(manifest, *ALLOWED, (path, model | source)), namespace=namespace)

    assert said("registry.example.com/models/qwen") == ""
    assert f"oci:// source of {path.split('.')[1]} " in said("docker.io/else/qwen")
    assert said("docker.io/else/qwen", TENANT) == "", "forbidden there alone"


def test_every_field_that_could_name_an_image_a_directory_or_remote_code_is_one_that_the_policies_know() -> None:
    """A new one in the CRDs fails here: add it to charts/paceline/templates/admission.yaml."""
    looked_at = {"engine.image", "engine.trustRemoteCode", "engine.podTemplate", "engine.args", "cache.hostPath"}
    parts = ("args", "custom.args", "engine.args", "engine.image")
    lists = {f"{list}.{part}" for list in ("candidates", "arms") for part in parts}
    models = {path.removeprefix("spec.").replace(".0", "").replace(".1", "") + ".source" for _, path, _ in SOURCES}
    found: set[str] = set()

    def look(node: dict[str, Any], path: str) -> None:
        for name, child in (node.get("properties") or {}).items():
            where = f"{path}.{name}".removeprefix(".")
            free = child.get("x-kubernetes-preserve-unknown-fields")
            model = name == "source" and "oci://" in json.dumps(child)
            if (
                free
                or model
                or name == "args"
                or any(word in name.lower() for word in ("image", "hostpath", "remotecode"))
            ):
                found.add(where)
            look(child.get("items") or child, where)

    for crd in crds():
        if crd["spec"]["names"]["kind"] == "BenchmarkRound":
            continue  # of images that ran
        look(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], "")
    assert found == looked_at | lists | models


def test_without_the_policies_the_right_to_make_our_kinds_is_the_right_to_make_pods(guarded: Running) -> None:
    assert send(guarded, "mallory", example(), namespace=FREE) == ""
    off = rendered(admission__enabled=False)
    assert of_kind(off, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding") == []


@pytest.mark.parametrize(
    "forbidden", [{"trustRemoteCode": False}, {"hostPath": False}, {"images": ["registry.example.com/"]}]
)
def test_what_is_forbidden_is_not_switched_off_in_silence(forbidden: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"admission\.enabled"):
        rendered(admission={"enabled": False, **forbidden})


def _collection(namespace: str) -> str:
    return f"/apis/paceline.dev/v1alpha1/namespaces/{namespace}/speculativedeployments"


def _in(namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
