"""A model that is a prefix of a bucket: pinned by its first fetch, and refused once its objects have changed."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support import buckets
from tests.support.buckets import Bucket
from tests.support.messages import Says

from paceline.core import Model, Source
from paceline.core.names import snapshot_path
from paceline.fetching import Artifact, FetchedModel, FetchRequest, FetchResult
from paceline.measure.models import downloaded
from paceline.pods.fetch import __main__ as program
from paceline.pods.fetch.request import FetchError

from .conftest import GENERATED, HEAD, Pod

pytestmark = pytest.mark.timeout(2 * buckets.BUILD_SECONDS)
S3, GCS = "s3://heads/team/eagle3", "gs://heads/team/eagle3"
FILES = {name: file.content for name, file in GENERATED[HEAD].history[0].files.items()}
STORED = {name: content for name, content in FILES.items() if name != "README.md"}
WEIGHTS = "model-00001-of-00002.safetensors"
DOWN = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}


def filled(bucket: Bucket) -> Bucket:
    for name, content in FILES.items():
        bucket.put(f"team/eagle3/{name}", content)
    return bucket


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[Bucket]:
    with buckets.s3(tmp_path / "s3") as bucket:
        yield filled(bucket)


@dataclass
class Prefetch:
    """Fetches onto one volume, in this process."""

    volume: Path
    environment: pytest.MonkeyPatch

    def result(self, bucket: Bucket, source: str = S3, *, env: Any = (), **named: Any) -> FetchResult:
        """`named`: revision or commit of the model, and fields of the request."""
        for name, value in {**bucket.environment, **dict(env)}.items():
            if value:
                self.environment.setenv(name, value)
            else:
                self.environment.delenv(name, raising=False)
        pin = {key: named.pop(key) for key in ("revision", "commit") if key in named}
        models = (Artifact(source=Source.parse(source), **pin),)
        with ExitStack() as locks:
            return program.fetch(FetchRequest(models=models, path=str(self.volume), **named), locks)

    def fetch(self, bucket: Bucket, source: str = S3, **named: Any) -> FetchedModel:
        return self.result(bucket, source, **named).models[0]

    def refused(self, bucket: Bucket, source: str = S3, **named: Any) -> FetchError:
        with pytest.raises(FetchError) as refused:
            self.result(bucket, source, **named)
        return refused.value

    @property
    def folder(self) -> Path:
        return self.volume / "hub" / "models--s3+heads+team+eagle3"

    def kept(self) -> list[str]:
        """What the volume has of the prefix."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not path.is_dir())


@pytest.fixture
def prefetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prefetch:
    return Prefetch(volume=tmp_path / "models", environment=monkeypatch)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prefetch:
    """On another, empty volume."""
    return Prefetch(volume=tmp_path / "other", environment=monkeypatch)


@pytest.fixture(autouse=True)
def _volumes(tmp_path: Path) -> None:
    for name in ("models", "other"):
        (tmp_path / name).mkdir(exist_ok=True)


def contents(model: FetchedModel) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(model.path).iterdir()}


def test_the_first_fetch_pins_what_the_bucket_has(prefetch: Prefetch, s3: Bucket) -> None:
    result = prefetch.result(s3)
    (model,) = result.models
    assert (model.source, model.revision) == (S3, "main")
    assert model.path == snapshot_path(S3, model.commit).replace("/models", str(prefetch.volume), 1)
    assert contents(model) == STORED
    assert model.bytes == sum(map(len, STORED.values()))
    assert result.facts[S3].architectures == ("LlamaForCausalLMEagle3",)


def test_pinned_it_needs_no_bucket(prefetch: Prefetch, s3: Bucket) -> None:
    first = prefetch.fetch(s3)
    assert prefetch.fetch(s3, commit=first.commit, env=DOWN) == first


def test_nor_in_another_set(prefetch: Prefetch, s3: Bucket) -> None:
    first = prefetch.fetch(s3, revision="monday")
    assert prefetch.fetch(s3, revision="tuesday", commit=first.commit, env=DOWN).commit == first.commit


def test_a_commit_as_revision_is_fetched_on_another_volume(prefetch: Prefetch, elsewhere: Prefetch, s3: Bucket) -> None:
    first = prefetch.fetch(s3)
    assert elsewhere.fetch(s3, revision=first.commit).commit == first.commit
    assert elsewhere.kept() == prefetch.kept()


def remove(bucket: Bucket) -> None:
    assert bucket.folder
    (bucket.folder / "team/eagle3/extra.json").unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda bucket: bucket.put("team/eagle3/config.json", FILES["config.json"] + b" "),
        lambda bucket: bucket.put("team/eagle3/added.json", b"{}"),
        lambda bucket: bucket.put(f"team/eagle3/{WEIGHTS}", bytes(len(FILES[WEIGHTS]))),
        remove,
    ],
    ids=["changed", "added", "same size", "removed"],
)
def test_objects_that_changed_are_refused(
    prefetch: Prefetch, elsewhere: Prefetch, s3: Bucket, change: Callable[[Bucket], None], says: Says
) -> None:
    s3.put("team/eagle3/extra.json", b"{}")
    commit = prefetch.fetch(s3).commit
    change(s3)
    error = elsewhere.refused(s3, commit=commit)
    assert (error.final, error.failure.source, error.failure.part) == (True, S3, "revision")
    says(error)
    assert elsewhere.kept() == []
    # The volume that has them as they were goes on with them.
    assert prefetch.fetch(s3, commit=commit).commit == commit


def test_another_revision_pins_anew_and_old_ones_leave_the_volume(prefetch: Prefetch, s3: Bucket) -> None:
    first = prefetch.fetch(s3, revision="monday")
    s3.put("team/eagle3/config.json", FILES["config.json"] + b" ")
    second = prefetch.fetch(s3, revision="tuesday", keep_revisions=1)
    assert second.commit != first.commit
    assert contents(second).keys() == STORED.keys()
    assert [path.name for path in (prefetch.folder / "snapshots").iterdir()] == [second.commit]
    # config.json of monday is gone, the weights of both days are one file.
    assert len(list((prefetch.folder / "blobs").iterdir())) == len(STORED)


def test_a_file_damaged_on_the_volume_is_read_from_the_bucket_again(prefetch: Prefetch, s3: Bucket, says: Says) -> None:
    model = prefetch.fetch(s3)
    next((prefetch.volume / "fetch" / "sets").iterdir()).unlink()
    (Path(model.path) / WEIGHTS).resolve().write_bytes(bytes(len(FILES[WEIGHTS])))
    error = prefetch.refused(s3, commit=model.commit, env=DOWN)
    assert not error.final
    says(error)
    assert prefetch.fetch(s3, commit=model.commit) == model
    assert contents(model) == STORED


def test_python_files_are_pinned_and_kept_only_if_they_are_trusted(
    prefetch: Prefetch, elsewhere: Prefetch, s3: Bucket
) -> None:
    s3.put("team/eagle3/modeling.py", b"print()")
    model = prefetch.fetch(s3)
    assert contents(model) == STORED
    assert prefetch.fetch(s3, commit=model.commit, trust_remote_code=True).commit == model.commit
    assert contents(model) == {**STORED, "modeling.py": b"print()"}
    s3.put("team/eagle3/modeling.py", b"input()")
    assert elsewhere.refused(s3, commit=model.commit).failure.part == "revision"


@pytest.mark.parametrize(
    ("source", "env", "final"),
    [
        (S3, {"AWS_SECRET_ACCESS_KEY": "another-s3cr3t"}, True),
        ("s3://nobody/team/eagle3", {}, True),
        ("s3://heads/team/eagle4", {}, True),
        ("s3://heads/team/notes", {}, True),
        ("s3://heads/team/pickled", {}, True),
        (S3, DOWN, False),
        (S3, {"AWS_ENDPOINT_URL": "storage"}, True),
        (S3, {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"},
         False),
        (GCS, {"GOOGLE_BASE_URL": "http://127.0.0.1:1", "GOOGLE_SKIP_SIGNATURE": "true"}, False),
        (GCS, {"GOOGLE_SERVICE_ACCOUNT_KEY": "not-a-key"}, True),
    ],
    ids=["wrong secret", "no bucket", "no objects", "no model", "pickles", "down", "no address", "no credentials",
         "Cloud Storage down", "no key"],
)  # fmt: skip
def test_a_refusal_names_the_way_out(
    prefetch: Prefetch, s3: Bucket, source: str, env: dict[str, str], final: bool, says: Says
) -> None:
    s3.put("team/notes/model.safetensors", b"")
    s3.put("team/pickled/config.json", b"{}")
    s3.put("team/pickled/pytorch_model.bin", b"")
    error = prefetch.refused(s3, source, env=env)
    says(error)
    assert error.final is final
    assert prefetch.kept() == []


async def test_no_message_has_a_secret(pod: Pod, s3: Bucket) -> None:
    environment = {**s3.environment, "AWS_ENDPOINT_URL": f"{s3.address}/a-secret", "AWS_SECRET_ACCESS_KEY": "a-secret"}
    ended = await pod.fetch(models=[{"source": S3}], environment=environment)
    assert ended.code
    assert "a-secret" not in ended.log + ended.message


def test_at_a_desk_a_name_is_pinned_by_its_first_download(tmp_path: Path, s3: Bucket) -> None:
    lock = os.open(tmp_path / "lock", os.O_CREAT)
    environ = {**os.environ, **s3.environment}

    def commit(revision: str) -> str:
        model = Model(source=S3, revision=revision)
        found = downloaded([model], [], tmp_path / "models", environ, lock, trust_remote_code=False)
        return found.commits[S3, revision]

    first = commit("monday")
    s3.put("team/eagle3/config.json", FILES["config.json"] + b" ")
    assert commit("monday") == first
    assert commit("tuesday") != first
    os.close(lock)


def until_some_is_written(blobs: Path) -> None:
    while not any(part.stat().st_size for part in blobs.glob("*.incomplete")):
        time.sleep(0.001)


async def test_an_interrupted_download_leaves_nothing_that_counts(pod: Pod, prefetch: Prefetch, s3: Bucket) -> None:
    header = json.dumps({"weight": {"dtype": "U8", "shape": [1 << 28], "data_offsets": [0, 1 << 28]}}).encode()
    s3.put("team/eagle3/model.safetensors", len(header).to_bytes(8, "little") + header + bytes(1 << 28))
    process, _ = await pod.start(models=[{"source": S3}], environment=dict(s3.environment))
    await asyncio.to_thread(until_some_is_written, prefetch.folder / "blobs")
    s3.server.send_signal(signal.SIGSTOP)
    process.kill()
    await process.wait()
    s3.server.send_signal(signal.SIGCONT)
    assert prefetch.kept()
    assert all(path.endswith(".incomplete") for path in prefetch.kept())
    for lock in (pod.volume / "fetch" / "locks").iterdir():
        lock.unlink()  # the waiting is tested in test_lock.py
    assert (await asyncio.to_thread(prefetch.fetch, s3)).bytes > 1 << 28
    assert not list(prefetch.folder.glob("blobs/*.incomplete"))
