"""A release to a registry of one's own: `python3 -m dev.release.dry_run`.

What the workflow runs, `dev/release/publish`, against a registry that this program starts on loopback, on a base of
Debian's packages, signed by a key made for it. Then what a user does, and what must fail. Needs root, and Debian.

    --write FILE     the report
    --address HOST   where the registry listens (127.0.0.1)
    --hold           when all is done, prints what there is as JSON, and keeps the registry until standard input ends
"""

import argparse
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dev.release import versions

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "dev" / "release"
CACHE = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline"))
TOOLS = CACHE / "release" / "bin"
NEEDED = ("crane", "syft", "cosign", "helm", "actionlint")


class FailedError(Exception):
    """A step did not do what it must."""


@dataclass(slots=True)
class Steps:
    """What was done, with its seconds, in order."""

    done: list[tuple[str, float, str]] = field(default_factory=list)

    def take(self, what: str, act: Callable[[], str]) -> str:
        print(f"dry run: {what}", file=sys.stderr, flush=True)
        began = time.monotonic()
        found = act()
        self.done.append((what, time.monotonic() - began, found))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A registry, and where this run writes."""

    registry: str
    out: Path
    keys: Path

    @property
    def image(self) -> str:
        return f"{self.registry}/paceline"

    @property
    def chart(self) -> str:
        return f"{self.registry}/charts/paceline"

    def digest(self, of: str) -> str:
        return (self.out / f"{of}.digest").read_text().strip()

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
            "REGISTRY": self.registry,
            "OUT": str(self.out),
            "PLAIN_HTTP": "yes",
            "COSIGN_PASSWORD": "",
            "COSIGN_SIGN": f"--yes --key {self.keys}/cosign.key --signing-config {self.keys}/services.json",
            "COSIGN_VERIFY": f"--key {self.keys}/cosign.pub --insecure-ignore-tlog",
            **more,
        }


def run(*argv: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Its standard output."""
    done = subprocess.run([str(one) for one in argv], env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"{' '.join(str(one) for one in argv)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def refused(says: str, *argv: str | Path, env: dict[str, str] | None = None) -> str:
    """What it says, which has `says` in it; succeeding is a failure."""
    try:
        run(*argv, env=env)
    except FailedError as error:
        if says not in str(error):
            raise FailedError(f"it failed, but not by {says!r}: {error}") from error
        return f"refused: {says}"
    raise FailedError(f"it succeeded and must not: {' '.join(str(one) for one in argv)}")


@contextmanager
def registry(address: str, log: Path) -> Iterator[str]:
    with socket.create_server((address, 0)) as free:
        port = free.getsockname()[1]
    storage = tempfile.mkdtemp(prefix="paceline-registry-")
    with log.open("w") as said:
        serving = subprocess.Popen(
            [TOOLS / "crane", "registry", "serve", "--address", f"{address}:{port}", "--disk", storage],
            stdout=said,
            stderr=said,
        )
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if not probe.connect_ex((address, port)):
                        break
                time.sleep(0.1)
            yield f"{address}:{port}"
        finally:
            serving.terminate()
            serving.wait(30)
            shutil.rmtree(storage)


def make_key(place: Place) -> str:
    place.keys.mkdir(parents=True)
    run(TOOLS / "cosign", "generate-key-pair", env=place.environment(), cwd=place.keys)
    run(TOOLS / "cosign", "signing-config", "create", "--out", place.keys / "services.json")
    return "no certificate authority, no transparency log"


def of_each_platform(place: Place) -> dict[str, str]:
    index = json.loads(run(TOOLS / "crane", "manifest", f"{place.image}@{place.digest('image')}"))
    return {f"{one['platform']['os']}/{one['platform']['architecture']}": one["digest"] for one in index["manifests"]}


def is_run(place: Place, platform: str, digest: str) -> str:
    """The image's own program, out of the registry, writes the CRDs that are checked in."""
    emulator = [] if platform == "linux/amd64" else ["/qemu"]
    with tempfile.TemporaryDirectory(prefix="paceline-image-") as name:
        root = Path(name) / "root"
        root.mkdir()
        run(TOOLS / "crane", "export", f"{place.image}@{digest}", Path(name) / "image.tar")
        run("tar", "-C", root, "-xf", Path(name) / "image.tar")
        if emulator:
            shutil.copy(run(SCRIPTS / "qemu"), root / "qemu")
        (root / "tmp" / "crds").mkdir(parents=True)
        configuration = json.loads(run(TOOLS / "crane", "config", f"{place.image}@{digest}"))["config"]
        environment = dict(one.split("=", 1) for one in configuration["Env"])
        python = ["/opt/venv/bin/python3.11" if emulator else "/opt/venv/bin/python"]
        program = [*emulator, *python, *configuration["Entrypoint"][1:]]
        run("chroot", root, *program, "crds", "--directory", "/tmp/crds", env=environment)
        libraries = "duckdb, numpy, mpmath, cel_expr_python, pydantic_core, hf_xet, aiohttp, yaml, rpds"
        run("chroot", root, *emulator, *python, "-c", f"import {libraries}", env=environment)
        for file in (ROOT / "crds").glob("*.yaml"):
            if (root / "tmp" / "crds" / file.name).read_bytes() != file.read_bytes():
                raise FailedError(f"{platform}: {file.name} is another")
        return (
            f"`paceline crds` writes what is in `crds/`; compiled packages are imported{' (qemu)' if emulator else ''}"
        )


EXECUTED = re.compile(r"<!-- executed -->\n\n((?:    .*\n|\n(?=    ))+)")


def blocks(document: str) -> list[str]:
    """The commands of a document that its reader is told were executed."""
    return [textwrap.dedent(block) for block in EXECUTED.findall(document)]


def as_a_user(place: Place) -> str:
    """docs/release.md, to the letter, with a key as the signer and a registry without TLS."""
    commands = blocks((ROOT / "docs" / "release.md").read_text())
    environment = place.environment()
    environment |= {"PATH": f"{TOOLS}:{environment['PATH']}", "VERSION": versions.current(), "SOURCE": ""}
    environment["SIGNER"] = environment["COSIGN_VERIFY"]
    without_tls = 'helm() { command helm "$@" --plain-http; }\n'
    with tempfile.TemporaryDirectory(prefix="paceline-user-") as name:
        run("bash", "-euo", "pipefail", "-c", without_tls + "\n".join(commands), env=environment, cwd=Path(name))
        document = json.loads((Path(name) / "paceline.spdx.json").read_text())
        pushed = json.loads((place.out / "paceline-linux-amd64.spdx.json").read_text())
    if document["packages"] != pushed["packages"]:
        raise FailedError("the SBOM that a user finds in the registry is another")
    many = sum(len(block.splitlines()) for block in commands)
    return f"{many} lines of docs/release.md; the SBOM in the registry is the one that was made"


def tampered(place: Place) -> list[str]:
    """What a user who verifies must be protected from."""
    crane, env = TOOLS / "crane", place.environment()
    with tempfile.TemporaryDirectory(prefix="paceline-tampered-") as name:
        layer = Path(name) / "layer.tar"
        (Path(name) / "evil").write_text("echo it was changed\n")
        run("tar", "-C", name, "-cf", layer, "evil")
        one = of_each_platform(place)["linux/amd64"]
        changed = run(
            crane, "append", "--base", f"{place.image}@{one}", "--new_layer", layer, "--new_tag", f"{place.image}:evil"
        ).rpartition("@")[2]
    found = [refused("no signatures found", SCRIPTS / "verify", changed, env=env)]
    # The signature of the right image, moved to the changed one: found, and of another digest.
    tags = run(crane, "ls", place.image).splitlines()
    moved = [tag for tag in tags if tag.startswith(place.digest("image").replace(":", "-"))]
    if not moved:
        raise FailedError(f"no tag of a signature among {tags}")
    for tag in moved:
        suffix = tag.removeprefix(place.digest("image").replace(":", "-"))
        run(crane, "copy", f"{place.image}:{tag}", f"{place.image}:{changed.replace(':', '-')}{suffix}")
    found.append(refused("does not match any digest in statement", SCRIPTS / "verify", changed, env=env))
    return found


def installed_by_digest(place: Place) -> str:
    """The chart by its digest, whose Deployment names the image by its own."""
    helm, chart = TOOLS / "helm", f"oci://{place.chart}@{place.digest('chart')}"
    with tempfile.TemporaryDirectory(prefix="paceline-pulled-") as name:
        run(helm, "pull", "--plain-http", chart, "--destination", name)
        (archive,) = Path(name).glob("*.tgz")
        (pushed,) = place.out.glob("*.tgz")
        if archive.read_bytes() != pushed.read_bytes():
            raise FailedError("the chart that was pulled is another")
    objects = run(helm, "template", "paceline", "--plain-http", chart)
    named = set(re.findall(r"image: \"?([^\s\"]+)", objects))
    if named != {f"{place.image}@{place.digest('image')}"}:
        raise FailedError(f"the chart names {named}")
    return (
        f"`helm pull` and `helm template` by digest; it names `paceline@{place.digest('image')[:19]}…` and nothing else"
    )


NOT_RUN = (
    ("keyless signing and its verification", "need Fulcio, Rekor and GitHub's token; a key replaced them"),
    ("provenance (`actions/attest`) and `gh attestation verify`", "needs GitHub"),
    ("`.github/workflows/release.yml` itself, the release's page", "needs GitHub; actionlint reads it in `make test`"),
    ("`python:3.11-slim-bookworm` as base", "no registry answers here; Debian's packages replaced it"),
    ("the arm64 image on an arm64 machine", "qemu replaced it"),
)


def report(place: Place, steps: Steps) -> str:
    platforms = of_each_platform(place)
    sizes = {platform: _size(place, digest) for platform, digest in platforms.items()}
    configuration = json.loads(run(TOOLS / "crane", "config", f"{place.image}@{platforms['linux/amd64']}"))
    commit = configuration["config"]["Labels"]["org.opencontainers.image.revision"][:8]
    lines = [
        "# A release, dry",
        "",
        "`make release-dry`: the workflow's program (`dev/release/publish`) against a registry on loopback,\n"
        "then a user's steps ([verifying](../release.md#verifying-a-release)).",
        "",
        f"Version {versions.current()}, commit {commit}, {datetime.now(UTC).date().isoformat()}, "
        f"{os.cpu_count()} processors.",
        "",
        f"Compressed: {', '.join(f'{platform} {size:.0f} MB' for platform, size in sizes.items())}.",
        "",
        "| step | seconds | |",
        "|---|---|---|",
        *(f"| {what} | {seconds:.0f} | {found} |" for what, seconds, found in steps.done),
        "",
        "Never run, here or elsewhere:",
        "",
        *(f"* {what}: {why}" for what, why in NOT_RUN),
    ]
    return "\n".join(lines) + "\n"


def _size(place: Place, digest: str) -> float:
    """In MB, as it travels."""
    manifest = json.loads(run(TOOLS / "crane", "manifest", f"{place.image}@{digest}"))
    return float(sum(layer["size"] for layer in manifest["layers"])) / 1e6


def packages(place: Place) -> str:
    counted = []
    for file in sorted(place.out.glob("*.spdx.json")):
        document = json.loads(file.read_text())
        named = [one.get("externalRefs", []) for one in document["packages"]]
        kinds = [
            ref["referenceLocator"].split("/")[0] for refs in named for ref in refs if ref["referenceType"] == "purl"
        ]
        if not {"pkg:deb", "pkg:pypi"} <= set(kinds):
            raise FailedError(f"{file.name} has only {sorted(set(kinds))}")
        arch = file.name.split("-")[2].partition(".")[0]
        counted.append(f"{arch}: {kinds.count('pkg:deb')} of Debian, {kinds.count('pkg:pypi')} of Python")
    return "; ".join(counted)


def rehearse(place: Place, steps: Steps) -> None:
    """`publish` step by step, so that each is timed; then the user."""
    base = steps.take("base images of both platforms", lambda: run(SCRIPTS / "bases", env=place.environment()))
    steps.done[-1] = (*steps.done[-1][:2], "Debian bookworm; arm64 unpacked, nothing of it executed")
    environment = place.environment(BASE=base)
    steps.take("a key", lambda: make_key(place))

    def published() -> str:
        run(SCRIPTS / "publish", env=environment)
        return "image, SBOMs, chart, signatures; verified"

    steps.take("`dev/release/publish`", published)
    steps.take("SBOMs", lambda: packages(place))
    for platform, digest in of_each_platform(place).items():
        steps.take(
            f"the image runs: {platform}", lambda platform=platform, digest=digest: is_run(place, platform, digest)
        )
    steps.take("a user verifies", lambda: as_a_user(place))
    steps.take("the chart, by digest", lambda: installed_by_digest(place))
    both = "an image with one layer more; the same with the right image's signature"
    steps.take(both, lambda: "; ".join(tampered(place)))
    steps.take("another key", lambda: wrong_key(place))
    steps.take("evidence, signed, through the registry; with another key", lambda: evidence(place))


def evidence(place: Place) -> str:
    """The commands of docs/evidence.md, with the statement that the tests have."""
    of_tests = ROOT / "tests" / "unit" / "evidence" / "signed"
    stated = json.loads((of_tests / "bundle.json").read_text())["dsseEnvelope"]["payload"]
    at, key = f"{place.registry}/evidence:chat", ("--key", place.keys / "cosign.key")
    verify = (sys.executable, "-m", "paceline.cli", "evidence", "verify")
    with tempfile.TemporaryDirectory(prefix="paceline-evidence-") as name:
        here, env = Path(name), place.environment(PYTHONPATH=str(ROOT / "operator"))
        (here / "evidence.json").write_bytes(base64.b64decode(stated))
        services = ("--signing-config", place.keys / "services.json")
        sign = ("attest-blob", *key, *services, "--statement", "evidence.json", "--bundle", "bundle.json")
        run(TOOLS / "cosign", *sign, env=env, cwd=here)
        run("tar", "-cf", "evidence.tar", "bundle.json", cwd=here)
        run(TOOLS / "crane", "append", "--insecure", "-f", "evidence.tar", "-t", at, cwd=here)
        run(TOOLS / "crane", "export", "--insecure", at, "there.tar", cwd=here)
        run("tar", "-xf", "there.tar", "-C", here, "--one-top-level=there", cwd=here)
        bundle = here / "there" / "bundle.json"
        run(*verify, bundle, "--key", place.keys / "cosign.pub", env=env)
        return refused("no listed key has signed it", *verify, bundle, "--key", of_tests / "cosign.pub", env=env)


def wrong_key(place: Place) -> str:
    with tempfile.TemporaryDirectory(prefix="paceline-key-") as name:
        run(TOOLS / "cosign", "generate-key-pair", env=place.environment(), cwd=Path(name))
        env = place.environment(COSIGN_VERIFY=f"--key {name}/cosign.pub --insecure-ignore-tlog")
        return refused("failed to verify signature", SCRIPTS / "verify", env=env)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.release.dry_run")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--hold", action="store_true")
    given = parser.parse_args(argv)
    out = ROOT / "build" / "release-dry"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    steps = Steps()
    try:
        steps.take("tools", lambda: run(SCRIPTS / "tools", *NEEDED) or "built, or there")
        with registry(given.address, out / "registry.log") as address:
            place = Place(registry=address, out=out, keys=out / "keys")
            rehearse(place, steps)
            if given.write:
                given.write.write_text(report(place, steps))
            if given.hold:
                told = {"image": place.image, "chart": place.chart, "registry": address}
                print(json.dumps(told | {f"{of}Digest": place.digest(of) for of in ("image", "chart")}), flush=True)
                sys.stdin.read()
    except FailedError as error:
        print(f"dry run: failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
