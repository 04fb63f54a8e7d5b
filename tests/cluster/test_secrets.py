"""Secrets that a server tells are in no status, Event or log of the operator's: a real kubelet reads the server's last
words, and a real API server keeps what is said of them."""

import yaml
from tests.cluster.example import emulated, small
from tests.support.kubernetes import OPERATOR, Namespace, kubectl
from tests.support.queries import finished, run_of, served

KEY, DATABASE = "canary-of-the-api-key-0123456789", "canary-of-the-database-0123456789"
LOOKS = f"api_key='{KEY}' db_password='canary-behind-a-word' hf_CanaryOfAnotherTenant012345 Bearer canary-bearer-0123"
CANARY = "canary"
LEAK = f"""
import os, pathlib, sys
if "sglang.launch_server" in sys.orig_argv:
    looks, seen = {LOOKS!r}, pathlib.Path("/seen/once")
    if os.path.isdir("/ctl") and any(word.startswith("--speculative") for word in sys.orig_argv):
        sys.exit(f"ValueError: no connection: {{os.environ['DATABASE']}} {{looks}}")
    if not os.path.isdir("/ctl") and not seen.exists():
        seen.touch()
        sys.exit(f"ValueError: first start: {{looks}}")
"""
"""Before the engine's own code: a pool's server dies of its first start, the candidate's in a round of each. Only the
client of a round has the values of Secrets, so only there is one told bare (docs/security.md)."""
TEMPLATE = {
    "spec": {
        "volumes": [{"name": "leak", "configMap": {"name": "leak"}}, {"name": "seen", "emptyDir": {}}],
        "containers": [
            {
                "name": "server",
                "volumeMounts": [{"name": "leak", "mountPath": "/leak"}, {"name": "seen", "mountPath": "/seen"}],
            }
        ],
    }
}


def test_what_a_server_says_of_its_secrets_is_in_nothing_of_the_operators(here: Namespace, hub: str) -> None:
    here.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"api": KEY}})
    here.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"url": DATABASE}})
    code = {"sitecustomize.py": LEAK}
    here.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leak"}, "data": code})
    env = [
        *emulated(),
        {"name": "PYTHONPATH", "value": "/leak:/app:/opt/emulator"},
        {"name": "DATABASE", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
    ]
    key = {"name": "keys", "key": "api"}
    here.apply(small("leaking", hub, engine={"env": env, "podTemplate": TEMPLATE, "apiKeySecretRef": key}))

    run = here.wait("a run", run_of(here, "leaking"), 120)
    here.wait("the verdict", finished(here, run), 200)
    here.wait("the baseline to serve", served(here, "leaking", "baseline"), 60)
    kept = {
        kind: yaml.safe_dump([{**one, "spec": None} for one in here.list(kind)])
        for kind in ("specdep", "bench", "jobs", "events")
    }
    log = kubectl("--namespace", OPERATOR, "logs", "deployment/paceline", "--tail=-1")
    assert "no connection: *** ***" in kept["bench"]
    assert "first start: ***" in kept["specdep"] + kept["events"] + log
    assert [where for where, text in {**kept, "log": log}.items() if CANARY in text.lower()] == []
