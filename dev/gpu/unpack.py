"""unpack.py KIT INTO: unpacks every part of KIT that is there, each file once. Exit 3: a part is still to come.

KIT has part1, part2, … as `pack` makes them, or only one of them; each may come in a call of its own.
"""

import hashlib
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main(kit: Path, into: Path) -> None:
    sums = next(iter(sorted(kit.glob("part*/SHA256SUMS"))), None)
    if sums is None:
        sys.exit(f"{kit}: it has no part1: make one with dev/gpu/pack")
    done = into / "unpacked"
    done.mkdir(parents=True, exist_ok=True)
    wanted = [line.split() for line in sums.read_text().splitlines()]
    due = [(digest, name) for digest, name in wanted if not (done / digest).exists()]
    here = [(digest, kit / name) for digest, name in due if (kit / name).is_file()]
    with ThreadPoolExecutor() as pool:  # lzma and sha256 let others run
        list(pool.map(lambda one: unpack(*one, into), here))
    for digest, _ in here:
        (done / digest).touch()
    if missing := sorted({name.partition("/")[0] for _, name in due if not (kit / name).is_file()}):
        print(f"{kit}: {', '.join(missing)} is still to come: call again with it, while this machine keeps {into}")
        sys.exit(3)


def unpack(digest: str, file: Path, into: Path) -> None:
    if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
        sys.exit(f"{file}: damaged: its SHA-256 is not that of SHA256SUMS")
    with tarfile.open(file, "r:xz") as opened:
        opened.extractall(into, filter="data")


main(Path(sys.argv[1]), Path(sys.argv[2]))
