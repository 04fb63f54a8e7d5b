"""A real etcd and kube-apiserver on loopback: admission, CRDs, CEL, RBAC and server-side apply, and nothing that acts.

The binaries are those of dev/cluster, which builds them.
"""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline"))
BINARIES = CACHE / "bin"
BUILD = Path(__file__).parents[2] / "dev" / "cluster" / "build"
RELEASE = os.environ.get("PACELINE_KUBERNETES", "")
"""`1.31`: the API server of that release (`make test-api-servers`), with the cluster's etcd and kubectl."""
API_SERVER = f"kube-apiserver-{RELEASE}" if RELEASE else "kube-apiserver"
ADMIN = "admin-of-a-test"
START_SECONDS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """`kubeconfig` is that of a member of system:masters; the token stands in it."""

    kubeconfig: Path
    url: str
    token: str
    certificate: Path
    """Signs itself: the one to trust."""
    processes: tuple[subprocess.Popen[bytes], ...]

    def kubectl(self, *args: str, given: object = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`given` is sent to standard input as JSON. Raises with what kubectl said, unless `check` is False."""
        done = subprocess.run(
            [BINARIES / "kubectl", "--kubeconfig", self.kubeconfig, *args],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(args)}: {done.stderr or done.stdout}")
        return done

    def install(self, definitions: Path) -> None:
        """CustomResourceDefinitions of a file or a directory; returns when their objects can be made."""
        self.kubectl("apply", "--server-side", "-f", str(definitions))
        wait = ("wait", "--for=condition=Established", "--timeout=30s", "-f", str(definitions))
        until = time.monotonic() + START_SECONDS
        # As long as there are no conditions at all, kubectl does not wait for one.
        while self.kubectl(*wait, check=time.monotonic() > until).returncode:
            time.sleep(0.1)

    def request(self, method: str, path: str, body: object = None, *, user: str = "") -> dict[str, Any]:
        """The answer, whatever its code: an object, or a Status that says what is wrong. Bytes are sent as they are;
        `user` is who it is asked as, in no group."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        context = ssl.create_default_context(cafile=str(self.certificate))
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=data,
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                **({"Impersonate-User": user} if user else {}),
            },
        )
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as response:
                answer = response.read()
        except urllib.error.HTTPError as error:
            answer = error.read()
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def kubeconfig_of(self, user: str) -> Path:
        """That of one of `users`."""
        path = self.kubeconfig.with_name(f"kubeconfig-{user}")
        path.write_text(_kubeconfig(replace(self, token=user)))
        return path

    def stop(self) -> None:
        """The API server first: without etcd it would not end in time."""
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start(directory: Path, *, options: Sequence[str] = (), users: Sequence[str] = ()) -> Running:
    """Both on free ports of 127.0.0.1, all state and logs in `directory`. Returns when the server is ready. `options`
    are more of the API server's; each of `users` is a member of system:masters whose token is the name."""
    subprocess.run([BUILD, "etcd", API_SERVER, "kubectl"], check=True, stdout=subprocess.DEVNULL)
    directory.mkdir(parents=True, exist_ok=True)
    client, peer, api = _free_ports(3)
    url = f"https://127.0.0.1:{api}"
    certificate = directory / "pki" / "apiserver.crt"
    key = directory / "service-account.key"
    known = {ADMIN: "admin", **{name: name for name in users}}
    tokens = directory / "tokens.csv"
    tokens.write_text("".join(f'{token},{name},{name},"system:masters"\n' for token, name in known.items()))
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    etcd = _run(
        directory / "etcd.log",
        BINARIES / "etcd",
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    server = _run(
        directory / "kube-apiserver.log",
        BINARIES / API_SERVER,
        f"--etcd-servers=http://127.0.0.1:{client}",
        f"--secure-port={api}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--cert-dir={certificate.parent}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        # There is no controller manager to make the namespaces' service accounts.
        "--disable-admission-plugins=ServiceAccount",
        # No endpoint of this server is ever looked for in the cluster.
        "--endpoint-reconciler-type=none",
        *options,
    )
    running = Running(
        kubeconfig=directory / "kubeconfig",
        url=url,
        token=ADMIN,
        certificate=certificate,
        processes=(etcd, server),
    )
    running.kubeconfig.write_text(_kubeconfig(running))
    try:
        _wait_until_ready(running, directory / "kube-apiserver.log")
    except BaseException:
        running.stop()
        raise
    return running


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _run(log: Path, *argv: str | Path) -> "subprocess.Popen[bytes]":
    """A child that ends with the thread that started it, even if that is killed: start from the main thread."""
    with log.open("wb") as out:
        return subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _kubeconfig(running: Running) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": running.url, "certificate-authority": str(running.certificate)},
                }
            ],
            "users": [{"name": "admin", "user": {"token": running.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        },
        indent=2,
    )


def _wait_until_ready(running: Running, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while running.kubectl("get", "--raw", "/readyz", check=False).returncode:
        ended = [process.args for process in running.processes if process.poll() is not None]
        if ended or time.monotonic() > until:
            raise RuntimeError(f"the API server is not ready: {log.read_text()[-2000:]}")
        time.sleep(0.3)
    running.kubectl("get", "namespace", "default")
