"""Load on a pool's Service by SGLang's own benchmark client, from a pod of the cluster.

Requests come at a rate, each whether others are answered or not. The client keeps its connections and uses the latest
again: a Service goes on sending what comes over one of them to the server that it was opened to.
"""

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any

from tests.support.kubernetes import KUBECTL, STATE, Manifest, Namespace
from tests.support.queries import POOL

from paceline.core.names import snapshot_path

RATE = 8
"""Requests a second, some of them side by side. A guard with a window of ten seconds needs four."""
TOKENS = 24
DATASET, REPORT = "/tmp/prompts.json", "/tmp/report.jsonl"
EXPORT = f"python -m paceline.cli datasets export code -o {DATASET}"
BENCH = f'rm -f {REPORT} && python -m paceline.pods.round.bench_client "$@" >&2 && cat {REPORT}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of the requests, with the first errors. `longest` is how many seconds the slowest waited for its whole
    answer: as somebody asked all the time, no gap in which nothing was answered was longer."""

    sent: int
    failed: int
    longest: float
    seconds: float
    errors: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.sent} sent, {self.failed} failed, longest gap < {self.longest:.2f} s in {self.seconds:.0f} s"


def users(here: Namespace, claim: str) -> None:
    """The pod that `seen_during` sends from; the claim has the model's tokenizer."""
    here.apply(_pod(claim))
    here.kubectl("wait", "--for=condition=Ready", "pod/users", "--timeout=60s")
    here.kubectl("exec", "users", "--", "sh", "-c", EXPORT)


def seen_during(here: Namespace, name: str, seconds: int, story: Callable[[], object]) -> Seen:
    """What came of requests to the deployment's pool from before the story until after it, which takes less than
    `seconds`."""
    command = [str(KUBECTL), "--kubeconfig", str(STATE / "kubeconfig"), "-n", here.name, "exec", "users", "--"]
    command += ["sh", "-c", BENCH, "sh", *bench(here, name, RATE * seconds)]
    with (
        TemporaryFile() as out,
        TemporaryFile() as said,
        subprocess.Popen(command, stdout=out, stderr=said) as sending,
    ):
        try:
            story()
            assert sending.poll() is None, "the load ended before the story did"
            code = sending.wait(180)
        finally:
            sending.kill()
        out.seek(0)
        said.seek(0)
        assert code == 0, said.read().decode()
        return seen(json.loads(out.read()))


def bench(here: Namespace, name: str, requests: int) -> list[str]:
    """The client's command line: short answers to the built-in prompts."""
    deployment = here.get("specdep", name)
    asked, artifacts = deployment["spec"]["target"], deployment["status"]["artifacts"]
    (commit,) = (found["commit"] for found in artifacts if found["source"] == asked["source"])
    body = {"stream_options": {"include_usage": True}, "max_completion_tokens": TOKENS}
    options = {
        "--backend": "sglang-oai-chat",
        "--base-url": f"http://{name}-{POOL}.{here.name}.svc",
        "--ready-check-timeout-sec": 0,
        "--model": asked["servedName"],
        "--tokenizer": snapshot_path(asked["source"], commit),
        "--dataset-name": "sharegpt",
        "--dataset-path": DATASET,
        "--num-prompts": requests,
        "--sharegpt-output-len": TOKENS + 1,
        "--request-rate": RATE,
        "--worker-threads": 1,
        "--warmup-requests": 0,
        "--output-file": REPORT,
        "--extra-request-body": json.dumps(body),
    }
    flags = ("--disable-ignore-eos", "--disable-retokenize", "--disable-tqdm", "--output-details")
    return [*flags, *(str(word) for option in options.items() for word in option)]


def seen(report: Mapping[str, Any]) -> Seen:
    """An answer without a token count broke off: the client then assumes as many as it was told, one too many."""
    errors = [error for error in report["errors"] if error]
    errors += ["broke off" for length in report["output_lens"] if length > TOKENS]
    return Seen(
        sent=len(report["errors"]),
        failed=max(len(errors), len(report["errors"]) - int(report["completed"])),
        longest=max(first + sum(gaps) for first, gaps in zip(report["ttfts"], report["itls"], strict=True)),
        seconds=report["duration"],
        errors=tuple(errors[:3]),
    )


def _pod(claim: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "users"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "users",
                    "image": "localhost/paceline:dev",
                    "command": ["sleep", "infinity"],
                    "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }
