"""Where a model is, and where models are kept from now on."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.messages import Says

from paceline.cli.importing.models import claim_of_model, mounts, source
from paceline.engines.importing import UnansweredError

HUB_HOME = "/root/.cache/huggingface"


def mounted(path: str, *, claim: str = "", below: str = "", **more: str) -> Any:
    volume = {
        "name": "v",
        **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"hostPath": {"path": "/x"}}),
    }
    mount = {"name": "v", "mountPath": path, **({"subPath": below} if below else {}), **more}
    return mounts({"volumes": [volume]}, {"volumeMounts": [mount]})


@pytest.mark.parametrize(
    ("named", "found", "where"),
    [
        ("Qwen/Qwen3-8B", (), "hf://Qwen/Qwen3-8B"),
        ("/models/qwen/8b", mounted("/models", claim="c"), "pvc://c/qwen/8b"),
        ("/models/qwen/8b/", mounted("/models/", claim="c"), "pvc://c/qwen/8b"),
        ("/model", mounted("/model", claim="c", below="weights/qwen"), "pvc://c/weights/qwen"),
        ("/models/8b", mounted("/models", claim="c", below="qwen"), "pvc://c/qwen/8b"),
        ("pvc://c/x", (), "pvc://c/x"),
        ("s3://bucket/x", (), "s3://bucket/x"),
        ("oci://r/x@sha256:0", (), "oci://r/x@sha256:0"),
    ],
)
def test_a_model_has_an_address(named: str, found: Any, where: str) -> None:
    assert source(named, found, "--target") == where


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("/model", mounted("/model", claim="c")),
        ("/models-of-mine/x", mounted("/models", claim="c")),
        ("/models/x", mounted("/models")),
        ("./x", ()),
        ("/models/x", mounted("/models", claim="c", subPathExpr="$(POD)")),
    ],
)
def test_or_somebody_has_to_say_it(named: str, found: Any, says: Says) -> None:
    with pytest.raises(UnansweredError) as asked:
        source(named, found, "--target")
    says(asked.value)


def kept(found: Any, env: Mapping[str, str] | None = None, claim: str = "", size: str = "") -> Any:
    return claim_of_model("qwen", "hf://a/b", found, env or {}, claim, size).field


@pytest.mark.parametrize(
    ("found", "env"),
    [
        (mounted(HUB_HOME, claim="hub"), {}),
        (mounted("/data", claim="hub"), {"HF_HOME": "/data"}),
        (mounted("/data", claim="hub"), {"HF_HUB_CACHE": "/data/hub"}),
    ],
)
def test_the_claim_of_the_hubs_cache_stays(found: Any, env: dict[str, str]) -> None:
    """Where its layout is Paceline's: `hub` at the root of the claim."""
    assert kept(found, env) == {"claimName": "hub"}


@pytest.mark.parametrize(
    ("found", "env"),
    [
        ((), {}),
        (mounted(HUB_HOME), {}),
        (mounted(HUB_HOME, claim="hub", below="hf"), {}),
        (mounted(f"{HUB_HOME}/hub", claim="hub"), {}),
        (mounted(HUB_HOME, claim="hub"), {"HF_HOME": "/data"}),
    ],
)
def test_another_layout_is_not_read(found: Any, env: dict[str, str]) -> None:
    assert kept(found, env) == {"claim": {"name": "qwen-models", "size": "200Gi"}}


def test_a_person_may_say_it() -> None:
    hub = mounted(HUB_HOME, claim="hub")
    assert kept(hub, claim="mine") == {"claimName": "mine"}
    assert kept(hub, size="60Gi") == {"claim": {"name": "qwen-models", "size": "60Gi"}}


def test_a_model_on_a_claim_keeps_it() -> None:
    found = claim_of_model("qwen", "pvc://weights/x", mounted("/models", claim="weights"), {}, "other", "1Gi")
    assert (found.field, found.mount and found.mount.path) == ({"claimName": "weights"}, "/models")
