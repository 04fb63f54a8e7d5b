"""The models and prompts of a file on this machine: their folders, and their commits for the evidence.

DIR of `--models` is a hub client's cache (`models--OWNER--NAME/snapshots/COMMIT`, as ~/.cache/huggingface/hub), or has
the folders OWNER/NAME and BUCKET/PREFIX; for pvc://CLAIM/PATH it has PATH, for configMap://NAME/KEY the file NAME/KEY.
Without DIR the prefetch program downloads missing files into a directory of ours.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.core import Dataset, Model, ModelFacts, Scheme, Source
from paceline.fetching import FETCH_VARIABLE, WHOLE_COMMIT, Artifact, FetchFailure, FetchRequest, FetchResult
from paceline.measure import pod
from paceline.pods.fetch import local
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError

KEEP = 1_000_000
"""Maximum revisions of a repository that a download keeps: all, because the disk belongs to a person."""
_ENDING_SECONDS = 5.0
"""Seconds for a download to end: finished files stay, and nothing waits for it."""
ModelKey = tuple[str, str]
"""Source and revision."""


class MissingError(LookupError):
    """A model or prompts are missing; the text says what to do."""


class DownloadError(RuntimeError):
    """A download failed and has reported why on stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModels:
    """`commits` and `places` (a model's folder, a dataset's file) by source and revision; `facts` by source."""

    commits: Mapping[ModelKey, str] = field(default_factory=dict)
    places: Mapping[ModelKey, Path] = field(default_factory=dict)
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)


def in_directory(models: Iterable[Model], datasets: Iterable[Dataset], directory: Path) -> LocalModels:
    """Find the models and datasets. Raises MissingError, or FetchError for a folder without a model."""
    commits: dict[ModelKey, str] = {}
    places: dict[ModelKey, Path] = {}
    facts: dict[str, ModelFacts] = {}
    for model in models:
        key = model.source, model.revision
        place = folder(model, directory)
        if place is None:
            raise MissingError(f"{model.source} at {model.revision} is not below {directory}: put it there")
        commits[key], places[key] = model.commit or commit_of(place, model.revision), place
        facts[model.source] = facts_of(model.source, place)
    for dataset in datasets:
        key = dataset.source, dataset.revision
        place = file_of(dataset, directory)
        commits[key] = dataset.commit or _digest_of(place)
        places[key] = place
    return LocalModels(commits=commits, places=places, facts=facts)


def folder(model: Model, directory: Path) -> Path | None:
    """The model's folder below the directory; None if no folder there has a config.json."""
    source = model.address
    if source.scheme is Scheme.CLAIM:
        places = [directory / source.path]
    else:
        places = [*_cached(source, model.commit or model.revision, directory), directory / source.name / source.path]
    return next((place for place in places if (place / "config.json").is_file()), None)


def commit_of(place: Path, revision: str) -> str:
    """The model's commit in evidence: from the hub client's cache or from the file; else a digest of the names and
    sizes of its files and of config.json, as for a model on a claim."""
    if place.parent.name == "snapshots" and WHOLE_COMMIT.fullmatch(place.name):
        return place.name
    if WHOLE_COMMIT.fullmatch(revision):
        return revision
    here = Artifact(source=Source(scheme=Scheme.CLAIM, name="here", path=place.name))
    return local.list_local_files(here, place.parent).pinned.commit


def file_of(dataset: Dataset, directory: Path | None) -> Path:
    """The file of a dataset that is not built in. Raises MissingError."""
    source = dataset.address
    if directory is None:
        raise MissingError(f"{source}: its file is in the cluster; name it with --prompts {dataset.name}=FILE")
    match source.scheme:
        case Scheme.CONFIG_MAP:
            places = [directory / source.name / source.path]
        case Scheme.HUB_DATASET:
            cached = [one / source.path for one in _cached(source, dataset.commit or dataset.revision, directory)]
            places = [*cached, directory / source.name / source.path]
        case _:
            places = [directory / source.path]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise MissingError(f"{source}: there is no {places[-1]}; put the file there")
    return found


def _cached(source: Source, revision: str, directory: Path) -> Iterator[Path]:
    """Where a hub client's cache may have the revision: the directory is the cache, or contains it as `hub` (HF_HOME
    and our own downloads do)."""
    for cache in (directory, directory / "hub"):
        repository = cache / source.cache_folder
        pinned = repository / "refs" / revision
        yield repository / "snapshots" / (pinned.read_text().strip() if pinned.is_file() else revision)


def _digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:40]


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def downloaded(
    models: Iterable[Model],
    datasets: Iterable[Dataset],
    directory: Path,
    environ: Mapping[str, str],
    lock: int,
    *,
    trust_remote_code: bool,
    log: Path | None = None,
) -> LocalModels:
    """Download with the prefetch program, all or nothing; it ends with us and keeps `lock` until then. Without `log` it
    reports progress on stderr. Raises DownloadError, or FetchError if the program was ended before it could give a
    reason."""
    directory.mkdir(parents=True, exist_ok=True)
    request = FetchRequest(
        models=tuple(_artifact(model, directory / "hub") for model in models),
        datasets=tuple(_artifact(dataset, directory / "hub") for dataset in datasets),
        path=str(directory),
        keep_revisions=KEEP,
        user="measure",
        trust_remote_code=trust_remote_code,
    )
    message = directory / f"fetched-{os.getpid()}"
    own: dict[str, Any] = {FETCH_VARIABLE: request.to_json(), "PACELINE_TERMINATION_MESSAGE_PATH": str(message)}
    process = pod.run(["python", "-m", "paceline.pods.fetch"], {**environ, **own}, log, lock)
    try:
        code = process.wait()
        said = message.read_text() if message.is_file() else ""
    finally:
        _end(process)
        message.unlink(missing_ok=True)
    if code:
        if sentence := sentence_of(said):
            raise DownloadError(sentence)
        raise FetchError(f"the download ended with {code}", final=True)
    result = FetchResult.from_message(said)
    found = (*result.models, *result.datasets)
    for one in found:
        name_commit(directory / "hub", Source.parse(one.source), one.revision, one.commit)
    return LocalModels(
        commits={(one.source, one.revision): one.commit for one in found},
        places={(one.source, one.revision): Path(one.path) for one in found},
        facts=result.facts,
    )


def name_commit(cache: Path, source: Source, revision: str, commit: str) -> None:
    """Record which commit a revision was, as a hub client does: `--models` finds it there without a network."""
    repository = cache / source.cache_folder
    if revision != commit and repository.is_dir():
        named = repository / "refs" / revision
        named.parent.mkdir(parents=True, exist_ok=True)
        named.write_text(commit)


def sentence_of(message: str) -> str:
    """The reason for a prefetch's failure, from its termination message."""
    return FetchFailure.from_message(message).sentence.strip()


def _artifact(wanted: Model | Dataset, cache: Path) -> Artifact:
    """The artifact at the file's commit, if it has a real one: zeros stand for a commit to be filled in. A revision of
    a bucket was pinned by its first download to the cache."""
    known = wanted.commit if (wanted.commit or "").strip("0") else ""
    pinned = cache / wanted.address.cache_folder / "refs" / wanted.revision
    if not known and wanted.address.in_bucket and pinned.is_file():
        known = pinned.read_text()
    return Artifact(source=wanted.address, revision=wanted.revision, commit=known or "")
