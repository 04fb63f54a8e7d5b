"""What the API server hands on of others: objects, statuses, annotations, refusals, amounts; and a kubeconfig."""

import argparse
import asyncio
import json
import math
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.runs import latency
from tests.unit.foreign.values import ANY, FEW, TEXT, refused, said, spoiled, text_of

from paceline import api
from paceline.api.run_status import BenchmarkRunStatus
from paceline.api.status import SpeculativeDeploymentStatus
from paceline.cli import cluster
from paceline.core.record import from_status, number, to_status
from paceline.kube import ApiError, transport
from paceline.kube.errors import error_of
from paceline.kube.names import wanted_fields
from paceline.kube.reading import a_page, an_event, an_object
from paceline.plan.deployment import fetch
from paceline.report import read as report

ABOUT = {"name": "a", "namespace": "b", "resourceVersion": "7"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": ABOUT, "spec": {}}
EVENT = {"type": "ADDED", "object": POD}
PAGE = {"metadata": {"resourceVersion": "7", "continue": ""}, "items": [POD, POD]}


def of(good: object) -> st.SearchStrategy[bytes]:
    return (spoiled(good) | ANY).map(lambda value: said(value).encode()) | text_of(said(good).encode()).map(
        lambda text: text.encode(errors="replace")
    )


@given(event=of(EVENT), page=of(PAGE), one=of(POD))
@FEW
def test_an_answer_of_the_api_server_is_objects_or_broken(event: bytes, page: bytes, one: bytes) -> None:
    """ValueError is what the transport takes for a broken connection (`Unavailable`), which a watch lives through."""
    with refused(ValueError):
        read = an_event(event)
        assert isinstance(read["type"], str)
        assert read["type"] == "ERROR" or int(read["object"]["metadata"].get("resourceVersion", 0)) >= 0
    with refused(ValueError):
        items, about = a_page(page)
        assert all(int(one.get("resourceVersion", 0)) >= 0 for one in (about, *(item["metadata"] for item in items)))
    with refused(ValueError):
        assert isinstance(an_object(one), dict)
    for body in (event, page, one):
        with refused(ValueError):
            wanted_fields(body)


REFUSAL = {
    "kind": "Status",
    "reason": "Conflict",
    "message": "no",
    "details": {"causes": [{"field": "metadata.uid", "message": "x"}], "retryAfterSeconds": 1},
}


@given(code=st.sampled_from([400, 409, 422, 429, 500, 503]), answer=spoiled(REFUSAL), wait=TEXT | st.just("3"))
@FEW
def test_a_refusal_is_an_error_of_the_api_whatever_it_says(code: int, answer: dict[str, object], wait: str) -> None:
    error = error_of(code, answer, transport._retry_after({"Retry-After": wait}))
    assert isinstance(error, ApiError)
    assert isinstance(error.message, str)
    assert 0 <= error.retry_after <= 3600


STATUS = latency()["status"]


@given(status=spoiled(STATUS) | ANY)
@FEW
def test_a_status_of_any_release_is_read(status: object) -> None:
    for kind in (BenchmarkRunStatus, SpeculativeDeploymentStatus):
        json.dumps(to_status(from_status(kind, status)), allow_nan=False)


SPEC = {key: latency()[key] for key in ("apiVersion", "kind", "metadata", "spec")}


@given(run=spoiled(SPEC))
@FEW
def test_a_manifest_is_a_run_or_has_problems(run: dict[str, object]) -> None:
    with refused(api.InvalidManifestError, longest=100_000):
        api.run(run)


@given(
    quantity=st.from_regex(
        r"[+-]?[0-9]{1,15}(\.[0-9]{1,3})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?", fullmatch=True
    )
)
@FEW
def test_an_amount_of_a_claim_is_bytes_in_any_notation(quantity: str) -> None:
    """Another may have made the claim, and asked for 107374182400m."""
    assert fetch.bytes_of(quantity).is_finite()


def test_the_same_amount_in_three_notations() -> None:
    assert fetch.bytes_of("107374182400m") == fetch.bytes_of("107374182.4") == Decimal("107374.1824e3")


STATUSES: tuple[object, ...] = (10**400, "1e999", "²", "9" * 5000, float("nan"), True, [])


@pytest.mark.parametrize("odd", STATUSES, ids=range(len(STATUSES)))
def test_a_number_that_is_none_is_read_as_none(odd: object) -> None:
    """Also an integer that no float can be made of."""
    assert math.isnan(number(odd))
    assert report.fraction_number(odd) is None


ENTRY = {"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [ENTRY],
    "users": [{"name": "a", "user": {"token": "t"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a", "namespace": "n"}}],
    "current-context": "a",
}


async def connected(file: Path, context: str | None = None) -> None:
    async with cluster.connection(argparse.Namespace(kubeconfig=str(file), context=context, namespace=None)):
        pass


@given(text=spoiled(KUBECONFIG).map(said) | text_of(said(KUBECONFIG).encode()))
@settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_kubeconfig_names_a_cluster_or_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text, encoding="utf-8", errors="replace")
    with refused(ValueError):
        asyncio.run(connected(file))
