"""What the lock files pin: whether all of it is locked, its licences, a bill of materials, what the index says of it.

dev/locked.py check          every requirement has a version and hashes, and a licence that is known; needs no network
dev/locked.py sbom FILE      CycloneDX 1.6, as JSON
dev/locked.py audit          asks the index: is a version withdrawn (PEP 592), are its hashes the index's, and, where
                             it has PyPI's JSON API, are vulnerabilities known. Fails where it cannot ask.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHIPPED = ("requirements.lock",)
"""In the operator's image."""
LOCKS = (*SHIPPED, "requirements-user.lock", "requirements-dev.lock", "requirements-bench.lock")
INDEX = "https://pypi.org"
ACCEPT = "application/vnd.pypi.simple.v1+json"
PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|Python Software Foundation|PSF|MPL|Mozilla|HPND|Unlicense|CC0|zlib|0BSD|Public Domain|CNRI",
    re.IGNORECASE,
)
PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+)(?: *;[^-]*)?(?P<hashes>(?:\s+--hash=sha256:[0-9a-f]{64})*)")
BY_HAND = {
    "sglang": "Apache-2.0",
}
"""Of what is not installed as a package, or does not say."""


class CannotAskError(Exception):
    """The index does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    name: str
    version: str
    hashes: tuple[str, ...]
    lock: str

    @property
    def licence(self) -> str:
        """As its own metadata say; "" if they do not."""
        if self.name in BY_HAND:
            return BY_HAND[self.name]
        try:
            said = metadata.metadata(self.name)
        except metadata.PackageNotFoundError:
            return ""
        classified = [
            one.rpartition(" :: ")[2] for one in said.get_all("Classifier") or () if one.startswith("License")
        ]
        text = (said.get("License") or "").strip()
        return said.get("License-Expression") or ", ".join(classified) or text.partition("\n")[0]


def read(lock: str, text: str) -> Iterator[Locked | str]:
    """The requirements of a lock file; a line that is none, as it is."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = line.partition(" #")[0].strip()
        if not line or line.startswith("#"):
            continue
        found = PIN.fullmatch(line)
        if found is None:
            yield line
            continue
        hashes = tuple(re.findall(r"[0-9a-f]{64}", found["hashes"]))
        yield Locked(name=found["name"], version=found["version"], hashes=hashes, lock=lock)


def locked(locks: Sequence[str] = LOCKS) -> list[Locked]:
    """Each package once."""
    entries = [one for lock in locks for one in read(lock, (ROOT / lock).read_text()) if isinstance(one, Locked)]
    return list({(one.name, one.version): one for one in reversed(entries)}.values())[::-1]


def faults() -> Iterator[str]:
    for lock in LOCKS:
        for one in read(lock, (ROOT / lock).read_text()):
            if isinstance(one, str):
                yield f"{lock}: not a version with hashes: {one:.80}"
            elif not one.hashes:
                yield f"{lock}: {one.name}=={one.version} has no hash"
    for one in locked():
        if not PERMISSIVE.search(one.licence):
            yield f"{one.lock}: {one.name}=={one.version}: licence {one.licence or 'unknown'!r:.80} is not a known one"


def bill() -> dict[str, Any]:
    """Of what the operator's image carries."""
    project = {"type": "application", "name": "paceline", "bom-ref": "paceline"}
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{one.name}@{one.version}",
            "name": one.name,
            "version": one.version,
            "purl": f"pkg:pypi/{one.name}@{one.version}",
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in one.hashes],
            "licenses": [{"license": {"name": one.licence}}],
        }
        for one in locked(SHIPPED)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": project},
        "components": components,
        "dependencies": [{"ref": "paceline", "dependsOn": [one["bom-ref"] for one in components]}],
    }


def ask(path: str) -> dict[str, Any]:
    request = urllib.request.Request(INDEX + path, headers={"Accept": ACCEPT})
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def judged(one: Locked, ask: Callable[[str], dict[str, Any]] = ask) -> tuple[list[str], bool]:
    """What is wrong with it, and whether vulnerabilities were asked for. Raises CannotAskError."""
    name = f"{one.name}=={one.version}"
    try:
        files = ask(f"/simple/{one.name}/")["files"]
    except (OSError, ValueError, KeyError) as error:
        raise CannotAskError(f"{name}: {error}") from error
    ours = [file for file in files if file["hashes"].get("sha256") in one.hashes]
    wrong = [] if ours else [f"{name}: the index has no file with any of its hashes"]
    wrong += [f"{name}: withdrawn: {file['yanked']}" for file in ours[:1] if file.get("yanked")]
    try:
        known = ask(f"/pypi/{one.name}/{one.version}/json")["vulnerabilities"]
    except (OSError, ValueError, KeyError):
        return wrong, False
    return wrong + [f"{name}: {each['id']}: {each.get('summary') or each['link']}" for each in known], True


def audit() -> int:
    everything = locked()
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(judged, everything))
    except CannotAskError as error:
        print(f"not audited: the index does not answer: {error}", file=sys.stderr)
        return 2
    asked = sum(was for _, was in found)
    print(f"{len(found)} packages: hashes are the index's and no version is withdrawn, but for what follows")
    print(f"vulnerabilities: asked for {asked} of {len(found)}" + ("" if asked else ": this index tells none"))
    wrong = [line for lines, _ in found for line in lines]
    print(*wrong, sep="\n")
    return bool(wrong)


def main(argv: Sequence[str]) -> int:
    match argv:
        case ["check"]:
            wrong = list(faults())
            print(*wrong or [f"{len(locked())} packages are locked by hash, with a known licence"], sep="\n")
            return bool(wrong)
        case ["sbom", file]:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(json.dumps(bill(), indent=1) + "\n")
            return 0
        case ["audit"]:
            return audit()
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
