"""The file that remembers a run: a BenchmarkRun with its status, whole at any time. Beside it lies a directory with the
logs of each round, and the lock of whoever measures."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from paceline.api.text import of_yaml
from paceline.core import Purpose, purpose_of
from paceline.evidence import question
from paceline.plan.objects import Object, brings_rounds, finished
from paceline.plan.step import Manifest

LOCK_SECONDS = 60.0
"""For what an interrupted round has left to end: more than a client's last heartbeat and a server's grace take."""
INHERITED = 100
"""Least number of the lock's descriptor in our processes: shells use the small ones themselves."""


class RecordError(ValueError):
    """A file that cannot be gone on with; the text says what to do."""


def folder_of(file: Path) -> Path:
    return file.with_suffix(".d")


def search_of(file: Path) -> Path:
    """The file of the search before a run: run.search.yaml beside run.yaml."""
    return file.with_name(f"{file.stem}.search{file.suffix}")


def load(file: Path) -> Manifest | None:
    """The run in the file; None if there is no file. Raises RecordError."""
    if not file.exists():
        return None
    try:
        documents = of_yaml(file.read_text())
        stored = documents[0] if len(documents) == 1 else None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise RecordError(f"{file}: {' '.join(str(error).split())}") from error
    if not isinstance(stored, dict) or stored.get("kind") != "BenchmarkRun" or "spec" not in stored:
        raise RecordError(f"{file}: it is no BenchmarkRun; name another file by -o")
    if wrong := next(_out_of_shape(stored), ""):
        raise RecordError(f"{file}: {wrong}, so it was edited or cut off: restore it, or remove it to measure it again")
    return stored


def _out_of_shape(run: Mapping[str, Any]) -> Iterator[str]:
    """What of it could not have been written by us."""
    metadata, status = run.get("metadata"), run.get("status", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        yield "metadata.name is no text"
    for field, part in (("spec", run["spec"]), ("status", status)):
        if not isinstance(part, dict):
            yield f"{field} is no object"
    for field in ("rounds", "conditions"):
        parts = status.get(field, []) if isinstance(status, dict) else []
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            yield f"status.{field} is no list of objects"


def gone_on_with(stored: Object | None, wanted: Object, note: str, file: Path) -> Manifest:
    """The run to go on with: as remembered, without the round that was interrupted, which does not count; or as wanted.
    `note`: how it is measured now. Raises RecordError if the file remembers something else."""
    if stored is None:
        return dict(wanted)
    if question(stored["spec"]) != question(wanted["spec"]):
        raise RecordError(
            f"{file}: it holds {stored['metadata']['name']}, which asks another question than "
            f"{wanted['metadata']['name']}; name another file by -o, or remove it"
        )
    status = {key: value for key, value in (stored.get("status") or {}).items() if key != "progress"}
    notes = [entry.get("notes") or () for entry in status.get("rounds", ()) if not entry.get("error")]
    if not finished(stored) and any(note not in said for said in notes):
        raise RecordError(
            f"{file}: its rounds were measured in another way than now ({note}): go on as before, name another file by "
            "-o, or remove it"
        )
    brought = {"measured": stored["spec"]["measured"]} if brings_rounds(stored) else {}
    return {
        **wanted,
        "metadata": stored["metadata"],
        "spec": {**wanted["spec"], **brought},
        "status": stored["status"] if finished(stored) else status,
    }


def asked(run: Object) -> Manifest:
    """The run without the rounds that it brings along: the question that is being measured."""
    return {**run, "spec": {key: value for key, value in run["spec"].items() if key != "measured"}}


def with_message(run: Object, status: Mapping[str, Any], message: str, how: Mapping[str, Any]) -> Manifest:
    """The run with this status, and with the message of a round's client if the round is new in it. `how`: machine,
    note and differs of `spec.measured`. A file that an older release began has no messages, and gets none; nor does a
    search, whose rounds no cluster takes."""
    before, after = _results(run.get("status") or {}), _results(status)
    messages = (run["spec"].get("measured") or {}).get("rounds", [])
    if after == before or len(messages) != before or purpose_of(run["spec"]) is Purpose.SEARCH:
        return {**run, "status": dict(status)}
    measured = {**how, "rounds": [*messages, message.strip()]}
    return {**run, "spec": {**run["spec"], "measured": measured}, "status": dict(status)}


def _results(status: Mapping[str, Any]) -> int:
    """Number of rounds with a result."""
    return sum(1 for entry in status.get("rounds", ()) if not entry.get("error"))


def save(file: Path, run: Object, mark: str = "") -> None:
    """A reader of the file sees the old one or the new one. `mark` is a comment in its first line."""
    text = f"# {mark}\n" * bool(mark) + yaml.dump(
        json.loads(json.dumps(run)), Dumper=yaml.CSafeDumper, sort_keys=False, width=120
    )
    beside = file.with_name(f".{file.name}.new")
    with beside.open("w") as out:
        out.write(f"# {mark}\n{text}" if mark else text)
        out.flush()
        os.fsync(out.fileno())
    beside.rename(file)


def noted(status: Mapping[str, Any], note: str) -> Manifest:
    """The status with the note in each round that was measured here."""
    rounds = [
        entry if entry.get("error") or entry.get("run") or note in entry.get("notes", ()) else _with(entry, note)
        for entry in status.get("rounds", ())
    ]
    return {**status, "rounds": rounds} if rounds else dict(status)


def _with(entry: Mapping[str, Any], note: str) -> Manifest:
    return {**entry, "notes": [note, *entry.get("notes", ())]}


def lock(folder: Path, waits: Callable[[], None]) -> int:
    """Descriptor of a lock that nobody else has, which processes may inherit: whoever of them lives keeps it. `waits`
    is called once if it is waited for. Raises RecordError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise RecordError(f"{folder}: {error.strerror}: name a file of another folder by -o") from error
    number = fcntl.fcntl(opened, fcntl.F_DUPFD, INHERITED)
    os.close(opened)
    deadline, told = time.monotonic() + LOCK_SECONDS, False
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told:
                waits()
            told = True
            if time.monotonic() > deadline:
                os.close(number)
                raise RecordError(
                    f"{folder}: another `paceline measure`, or a server that it has started, still runs: end it "
                    f"(fuser -v {folder / 'lock'} shows it), or name another file by -o"
                ) from None
            time.sleep(0.2)
        else:
            return number
