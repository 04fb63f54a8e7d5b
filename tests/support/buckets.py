"""Servers of buckets on loopback: Versity's gateway (S3, with signatures) and fake-gcs-server (Cloud Storage)."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from tests.support.running import free_port

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "dev" / "release" / "tools"
BUILD_SECONDS = 900.0
"""A first build takes two minutes of a core, and downloads 400 MB of modules."""


def program(name: str) -> Path:
    """Built at its first use, as a release's tools are."""
    made = subprocess.run([TOOLS, name], capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert made.returncode == 0, made.stderr
    where = subprocess.run([TOOLS, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    return Path(where) / name


@dataclass(frozen=True)
class Bucket:
    """`environment` is what a prefetch needs to read it."""

    address: str
    environment: Mapping[str, str]
    server: "subprocess.Popen[bytes]"
    folder: Path | None = None
    """Of S3: the bucket's objects are the files below it."""

    def put(self, key: str, content: bytes) -> None:
        if self.folder:
            (self.folder / key).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / key).write_bytes(content)
        else:
            _post(f"{self.address}/upload/storage/v1/b/heads/o?uploadType=media&name={key}", content)


@contextmanager
def s3(folder: Path) -> Iterator[Bucket]:
    """A bucket `heads`, readable with its key only."""
    bucket, port = folder / "heads", free_port()
    bucket.mkdir(parents=True)
    key = {"ROOT_ACCESS_KEY": "reader", "ROOT_SECRET_KEY": "s3cr3t-of-the-bucket"}
    command = [program("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", "posix", "--nometa", folder]
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": key["ROOT_ACCESS_KEY"],
        "AWS_SECRET_ACCESS_KEY": key["ROOT_SECRET_KEY"],
    }
    with _served([str(part) for part in command], key, environment["AWS_ENDPOINT_URL"]) as server:
        yield Bucket(address=environment["AWS_ENDPOINT_URL"], environment=environment, server=server, folder=bucket)


@contextmanager
def gcs() -> Iterator[Bucket]:
    """A public bucket `heads`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [str(program("fake-gcs-server")), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1",
               "-port", str(port), "-public-host", f"127.0.0.1:{port}", "-log-level", "error"]  # fmt: skip
    with _served(command, {}, f"{address}/storage/v1/b") as server:
        _post(f"{address}/storage/v1/b", json.dumps({"name": "heads"}).encode())
        environment = {"GOOGLE_BASE_URL": address, "GOOGLE_SKIP_SIGNATURE": "true"}
        yield Bucket(address=address, environment=environment, server=server)


@contextmanager
def _served(command: list[str], environment: Mapping[str, str], address: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 30
            while not _answers(address):
                assert server.poll() is None, f"{command[0]} ended"
                assert time.monotonic() < until, f"{command[0]} does not answer"
                time.sleep(0.05)
            yield server
        finally:
            server.kill()


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except URLError:
        return False
    return True


def _post(address: str, content: bytes) -> None:
    request = urllib.request.Request(address, data=content, headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()
