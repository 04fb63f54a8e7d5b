"""Load on a pool's Service by Paceline's client, from a pod of the cluster.

Requests come at a rate, each whether others are answered or not. The client keeps its connections and uses the latest
again: a Service goes on sending what comes over one of them to the server that it was opened to.
"""

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from tempfile import TemporaryFile
from typing import Any

from tests.support.kubernetes import KUBECTL, STATE, Manifest, Namespace
from tests.support.queries import POOL

from paceline.pods import datasets
from paceline.pods.round.client import Requests
from paceline.pods.round.load import CHAT, COUNTED, arrivals

RATE = 8
"""Requests a second, some of them side by side. A guard with a window of ten seconds needs four."""
TOKENS = 24
SEND = "cat > /tmp/load && python -m paceline.pods.round.client /tmp/load /tmp/report && cat /tmp/report"


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


def users(here: Namespace) -> None:
    """The pod that `seen_during` sends from."""
    here.apply(POD)
    here.kubectl("wait", "--for=condition=Ready", "pod/users", "--timeout=60s")


def seen_during(here: Namespace, name: str, seconds: int, story: Callable[[], object]) -> Seen:
    """What came of requests to the deployment's pool from before the story until after it, which takes less than
    `seconds`."""
    command = [str(KUBECTL), "--kubeconfig", str(STATE / "kubeconfig"), "-n", here.name, "exec", "-i", "users", "--"]
    with TemporaryFile() as load, TemporaryFile() as out, TemporaryFile() as said:
        load.write(requests(here, name, RATE * seconds).to_json().encode())
        load.seek(0)
        with subprocess.Popen([*command, "sh", "-c", SEND], stdin=load, stdout=out, stderr=said) as sending:
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


def requests(here: Namespace, name: str, count: int) -> Requests:
    """Short answers to the built-in prompts."""
    model = here.get("specdep", name)["spec"]["target"]["servedName"]
    asked = {"model": model, "stream": True, "max_completion_tokens": TOKENS, **COUNTED}
    texts = islice(cycle(datasets.load_dataset("code")), count)
    return Requests(
        url=f"http://{name}-{POOL}.{here.name}.svc{CHAT}",
        bodies=tuple(
            {**asked, "max_completion_tokens": TOKENS, "messages": [{"role": "user", "content": text}]}
            for text in texts
        ),
        concurrency=1,
        arrivals=arrivals(RATE, count),
    )


def seen(report: Mapping[str, Any]) -> Seen:
    errors = [error for error in report["errors"] if error]
    return Seen(
        sent=len(report["errors"]),
        failed=len(errors),
        longest=max(report["latencies"]),
        seconds=report["duration"],
        errors=tuple(errors[:3]),
    )


POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "users"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "users", "image": "localhost/paceline:dev", "command": ["sleep", "infinity"]}],
    },
}
