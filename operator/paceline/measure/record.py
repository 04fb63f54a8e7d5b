"""The file with a run's state: a BenchmarkRun with its status, and its BenchmarkRounds, complete at any time. Beside it
is a directory with the logs of each round, and the lock of the process that measures."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from paceline.api.model import API_VERSION
from paceline.api.round import ROUND_KIND, rounds_of
from paceline.api.text import Dumper, of_yaml
from paceline.core import Purpose, purpose_of
from paceline.core.manifest import Manifest, Object
from paceline.core.names import RUN_LABEL, round_name
from paceline.core.text import error_text
from paceline.evidence import question
from paceline.plan.objects import brings_rounds, finished

LOCK_SECONDS = 60.0
"""Seconds for an interrupted round to end: more than a client's last heartbeat and a server's grace period."""
INHERITED = 100
"""Lowest number of the lock's descriptor in our processes: shells use the small numbers themselves."""


class RecordError(ValueError):
    """The file cannot be continued; the text says what to do."""


def folder_of(file: Path) -> Path:
    return file.with_suffix(".d")


def search_of(file: Path) -> Path:
    """The file of the search before a run: run.search.yaml beside run.yaml."""
    return file.with_name(f"{file.stem}.search{file.suffix}")


def load_run(file: Path) -> Manifest | None:
    """The run in the file; None if there is no file. Raises RecordError."""
    if not file.exists():
        return None
    try:
        documents = of_yaml(file.read_text())
        runs, rounds = (_of_kind(documents, kind) for kind in ("BenchmarkRun", ROUND_KIND))
        stored = runs[0] if len(runs) == 1 and len(documents) == 1 + len(rounds) else None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise RecordError(f"{file}: {error_text(error)}") from error
    if stored is None or "spec" not in stored:
        raise RecordError(f"{file}: it is not a BenchmarkRun; name another file with -o")
    if wrong := next(_out_of_shape(stored, rounds), ""):
        raise RecordError(f"{file}: {wrong}, so it was edited or cut off: restore it, or remove it to measure it again")
    return {**stored, "rounds": [one["spec"] for one in rounds]}


def _of_kind(documents: Sequence[Any], kind: str) -> list[Manifest]:
    return [one for one in documents if isinstance(one, dict) and one.get("kind") == kind]


def _out_of_shape(run: Mapping[str, Any], rounds: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Contents that we could not have written."""
    metadata, status = run.get("metadata"), run.get("status", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        yield "metadata.name is not a string"
    for field, part in (("spec", run["spec"]), ("status", status)):
        if not isinstance(part, dict):
            yield f"{field} is not an object"
    conditions = status.get("conditions", []) if isinstance(status, dict) else []
    if not isinstance(conditions, list) or not all(isinstance(one, dict) for one in conditions):
        yield "status.conditions is not a list of objects"
    for one in rounds:
        spec = one.get("spec")
        if not isinstance(spec, dict) or not all(isinstance(spec.get(number), int) for number in ("round", "try")):
            yield f"spec of a {ROUND_KIND} has no number of a round and a try"


def gone_on_with(stored: Object | None, wanted: Object, note: str, file: Path) -> Manifest:
    """The run to continue: as stored, without the interrupted round, which does not count; or as wanted. `note`: how it
    is measured now. Raises RecordError if the file holds something else."""
    if stored is None:
        return dict(wanted)
    if question(stored["spec"]) != question(wanted["spec"]):
        raise RecordError(
            f"{file}: it holds {stored['metadata']['name']}, which asks a different question from "
            f"{wanted['metadata']['name']}; name another file with -o, or remove it"
        )
    status = {key: value for key, value in (stored.get("status") or {}).items() if key != "progress"}
    notes = [one.notes for one in rounds_of(stored) if not one.error]
    if not finished(stored) and any(note not in said for said in notes):
        raise RecordError(
            f"{file}: its rounds were measured differently ({note}): continue as before, name another file with -o, "
            "or remove it"
        )
    brought = {"measured": stored["spec"]["measured"]} if brings_rounds(stored) else {}
    return {
        **wanted,
        "metadata": stored["metadata"],
        "spec": {**wanted["spec"], **brought},
        "status": stored["status"] if finished(stored) else status,
        "rounds": stored.get("rounds", []),
    }


def without_rounds(run: Object) -> Manifest:
    """The run without rounds measured before: the question to measure."""
    return {**run, "spec": {key: value for key, value in run["spec"].items() if key != "measured"}}


def with_round(run: Object, round: Mapping[str, Any], how: Mapping[str, Any]) -> Manifest:
    """The run with one more round. `how`: machine, note and differs of `spec.measured`. A search has no
    `spec.measured`, because no cluster accepts its rounds."""
    gone_on = {**run, "rounds": [*run.get("rounds", ()), noted(round, how["note"])]}
    if purpose_of(run["spec"]) is Purpose.SEARCH:
        return gone_on
    results = sum(1 for one in rounds_of(gone_on) if not one.error)
    return {**gone_on, "spec": {**run["spec"], "measured": {**how, "rounds": results}}}


def noted(round: Mapping[str, Any], note: str) -> Manifest:
    """The round with the note, if it was measured here."""
    if round.get("error") or round.get("run"):
        return dict(round)
    return {**round, "notes": [note, *round.get("notes", ())]}


def as_documents(run: Object) -> Iterator[Manifest]:
    """The run and its rounds as documents for `kubectl apply`."""
    yield {key: value for key, value in run.items() if key != "rounds"}
    for spec in run.get("rounds", ()):
        name = run["metadata"]["name"]
        namespace = {key: value for key, value in run["metadata"].items() if key == "namespace"}
        metadata = {"name": round_name(name, spec["round"], spec["try"]), **namespace, "labels": {RUN_LABEL: name}}
        yield {"apiVersion": API_VERSION, "kind": ROUND_KIND, "metadata": metadata, "spec": spec}


def save(file: Path, run: Object, mark: str = "") -> None:
    """Replace the file atomically. `mark` becomes a comment in its first line."""
    text = f"# {mark}\n" * bool(mark) + yaml.dump_all(
        json.loads(json.dumps(list(as_documents(run)))), Dumper=Dumper, sort_keys=False, width=120
    )
    beside = file.with_name(f".{file.name}.new")
    with beside.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    beside.rename(file)


def lock(folder: Path, waits: Callable[[], None]) -> int:
    """Descriptor of an exclusive lock that child processes may inherit: any of them that lives keeps it. `waits` is
    called once if we have to wait. Raises RecordError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise RecordError(f"{folder}: {error.strerror}: name a file of another folder with -o") from error
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
                    f"{folder}: another `paceline measure`, or a server that it has started, still runs: stop it "
                    f"(fuser -v {folder / 'lock'} shows it), or name another file with -o"
                ) from None
            time.sleep(0.2)
        else:
            return number
