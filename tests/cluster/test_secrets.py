"""Secrets that a server tells are in no status, Event or log of the operator's: a real kubelet reads the server's last
words, and a real API server keeps what is said of them."""

import json

from tests.cluster.example import emulated, small
from tests.support.kubernetes import OPERATOR, Namespace, kubectl
from tests.support.queries import finished, run_of, served

KEY, DATABASE = "canary-of-the-api-key-0123456789", "canary-of-the-database-0123456789"
LOOKS = f"api_key='{KEY}' db_password='canary-behind-a-word' hf_CanaryOfAnotherTenant012345 Bearer canary-bearer-0123"
CANARY = "canary"
LEAK = f"""
import os, pathlib, sys
if "sglang.launch_server" in sys.orig_argv:
    looks, seen = {LOOKS!r}, pathlib.Path("/seen/starts")
    if os.path.isdir("/ctl") and any(word.startswith("--speculative") for word in sys.orig_argv):
        sys.exit(f"ValueError: no connection: {{os.environ['DATABASE']}} {{looks}}")
    if not os.path.isdir("/ctl") and (not seen.exists() or len(seen.read_text()) < 2):
        seen.open("a").write("x")
        sys.exit(f"ValueError: not yet: {{looks}}")
"""
"""Before the engine's own code: a pool's server dies of its first two starts, the candidate's in a round of each.
Only the client of a round has the values of Secrets, so only there is one told bare (docs/security.md)."""
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


def told(here: Namespace, kind: str) -> str:
    """All but what people have written."""
    return json.dumps([{**one, "spec": None} for one in here.list(kind)])


def said(here: Namespace, word: str) -> str | None:
    return text if word in (text := told(here, "specdep")) else None


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

    early = here.wait("the status to say why it does not start", lambda: said(here, "not yet"), 120)
    run = here.wait("a run", run_of(here, "leaking"), 120)
    here.wait("the verdict", finished(here, run), 200)
    here.wait("the baseline to serve", served(here, "leaking", "baseline"), 60)
    kept = {kind: told(here, kind) for kind in ("specdep", "bench", "jobs", "events")}
    log = kubectl("--namespace", OPERATOR, "logs", "deployment/paceline", "--tail=-1")
    assert "no connection: *** api_key='***' db_password='***' *** Bearer ***" in kept["bench"]
    assert "not yet: api_key='***' db_password='***' *** Bearer ***" in early
    assert [where for where, text in {**kept, "early": early, "log": log}.items() if CANARY in text.lower()] == []
