"""Images that run the same and are not the same, loaded into every node: a tag that was moved."""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.support.kubernetes import KUBECTL, STATE
from tests.support.overlay import ROOT

MOVING = "localhost/paceline-moving:dev"
CONFIG = "application/vnd.docker.container.image.v1+json"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar"


def move_tag(to: str, directory: Path, image: str = MOVING) -> None:
    """From now on `image` is the emulated engine with `to` in its configuration, so under a digest of its own."""
    archive = directory / f"paceline-moving-{to}.tar"
    write(archive, KUBECTL.parents[1] / "images" / "paceline-sglang-emulator.tar", to, image)
    subprocess.run([ROOT / "dev" / "cluster" / "load-image", archive], check=True, capture_output=True, timeout=120)


def remove(image: str) -> None:
    """From every node, as a kubelet does that needs the space."""
    for node in (0, 1):
        socket = STATE / f"node-{node}" / "containerd.sock"
        command = ["ctr", "--address", socket, "--namespace", "k8s.io", "images", "rm", image]
        subprocess.run(command, check=True, capture_output=True, timeout=60)


def write(archive: Path, engine: Path, label: str, name: str = MOVING) -> None:
    """An OCI archive of the engine's image with one label more. Its layers are left out: every node has them."""
    with tarfile.open(engine) as image:
        (listed,) = _read(image, "manifest.json")
        config = _read(image, listed["Config"])
        sizes = [image.getmember(name).size for name in listed["Layers"]]
    config["config"] = {**config.get("config", {}), "Labels": {"dev.paceline.moved": label}}
    blob = json.dumps(config).encode()
    # A docker archive has its layers as they are unpacked, so their digests are those of the configuration.
    layers = [
        {"mediaType": LAYER, "digest": digest, "size": size}
        for digest, size in zip(config["rootfs"]["diff_ids"], sizes, strict=True)
    ]
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _described(blob, CONFIG), "layers": layers}
    whole = json.dumps(manifest).encode()
    index = {**_described(whole, MANIFEST), "annotations": {"io.containerd.image.name": name}}
    files = {
        "oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [index]}).encode(),
        **{f"blobs/{_digest(one).replace(':', '/')}": one for one in (blob, whole)},
    }
    with tarfile.open(archive, "w") as written:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            written.addfile(entry, io.BytesIO(content))


def _read(image: tarfile.TarFile, name: str) -> Any:
    member = image.extractfile(name)
    assert member, name
    return json.load(member)


def _described(content: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
