"""Models of Google's buckets, as `test_buckets.py` has those of S3 (`make test-gcs`). Their server is long to build."""

from collections.abc import Iterator

import pytest
from tests.support import buckets
from tests.support.buckets import Bucket
from tests.support.messages import Says

from paceline.fetching import FetchResult

from .conftest import TARGET, Pod
from .test_buckets import GCS, Prefetch, _volumes, filled, prefetch, s3

__all__ = ["_volumes", "prefetch", "s3"]
pytestmark = pytest.mark.timeout(2 * buckets.BUILD_SECONDS)


@pytest.fixture
def gcs() -> Iterator[Bucket]:
    with buckets.gcs() as bucket:
        yield filled(bucket)


def test_the_same_objects_are_the_same_commit_in_every_bucket(prefetch: Prefetch, s3: Bucket, gcs: Bucket) -> None:
    assert prefetch.fetch(s3).commit == prefetch.fetch(gcs, GCS).commit


def test_a_key_outside_of_its_prefix_is_refused(prefetch: Prefetch, gcs: Bucket, says: Says) -> None:
    gcs.put("team/eagle3/../../../etc/x.json", b"{}")
    error = prefetch.refused(gcs, GCS)
    says(error)
    assert error.final


async def test_a_target_of_the_hub_and_a_head_of_a_bucket_are_one_set(pod: Pod, gcs: Bucket) -> None:
    models = [{"source": f"hf://{TARGET}"}, {"source": GCS}]
    ended = await pod.fetch(models=models, environment=dict(gcs.environment))
    assert ended.code == 0, ended.log
    assert [one.source for one in FetchResult.from_message(ended.message).models] == [f"hf://{TARGET}", GCS]
