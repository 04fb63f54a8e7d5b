"""Fields of one name are converted without a line of code; what differs is named."""

from datetime import timedelta

from paceline import core
from paceline.api.by_name import decimal, duration, given, to_core, to_manifest
from paceline.api.deployment import GuardSpec, PromotionSpec
from paceline.api.draft import AdaptiveSpec, DepthSpec, TreeSpec
from paceline.api.engine import AcceleratorSpec, EngineSpec
from paceline.api.gate import ParitySpec
from paceline.api.pod import EnvVar, SecretKey
from paceline.api.pool import CandidateSpec

TREE = core.Tree(num_steps=3, top_k=4, num_draft_tokens=8)
DEPTHS = (DepthSpec(from_batch_size=1, num_steps=5), DepthSpec(from_batch_size=9, num_steps=0))
ENGINE = EngineSpec(
    type="SGLang",
    version="0.5.23",
    image="x",
    env=(EnvVar(name="A", value="1"),),
    api_key_secret_ref=SecretKey(name="keys", key="api"),
)


def test_a_model_becomes_the_record_of_the_same_fields() -> None:
    assert to_core(core.Tree, TreeSpec(num_steps=3, top_k=4, num_draft_tokens=8)) == TREE


def test_an_absent_field_is_left_to_the_record() -> None:
    assert to_core(core.Parity, ParitySpec(samples=8)) == core.Parity(samples=8, max_tokens=128, near_tie=0.25)
    assert given(core.Parity, None) == {}


def test_a_percentage_becomes_a_fraction_and_a_duration_a_time() -> None:
    assert to_core(core.GuardSpec, GuardSpec(acceptance_drop="12.5%")).acceptance_drop == 0.125
    assert to_core(core.PromotionSpec, PromotionSpec(progress_deadline="1h5s")).progress_deadline == timedelta(
        hours=1, seconds=5
    )


def test_models_in_models_become_records_or_what_kubernetes_takes() -> None:
    candidate = CandidateSpec(name="a", depth_by_batch_size=DEPTHS, adaptive=AdaptiveSpec())
    arm = to_core(core.Arm, candidate, draft=None)
    assert (arm.depth_by_batch_size, arm.adaptive) == (
        (
            core.Depth(from_batch_size=1, num_steps=5),
            core.Depth(from_batch_size=9, num_steps=0),
        ),
        core.Adaptive(),
    )
    assert to_core(core.Engine, ENGINE).env == ({"name": "A", "value": "1"},)


def test_a_field_that_is_called_otherwise_has_its_other_name_in_the_table() -> None:
    engine = to_core(core.Engine, ENGINE)
    assert engine.api_key == core.SecretKey(name="keys", key="api")
    assert to_manifest(EngineSpec, engine)["api_key_secret_ref"] == {"name": "keys", "key": "api"}


def test_an_exception_takes_the_place_of_the_field() -> None:
    spec = AcceleratorSpec(product="x", count=4)
    assert to_core(core.Accelerator, spec, tensor_parallel_size=4).tensor_parallel_size == 4
    assert to_manifest(TreeSpec, TREE, top_k=1) == {"num_steps": 3, "top_k": 1, "num_draft_tokens": 8}


def test_a_field_that_was_added_is_written_only_where_it_is_not_the_default() -> None:
    """Otherwise the fingerprint of every question would move with it."""
    usual = core.Accelerator(product="x", count=4, tensor_parallel_size=4)
    other = core.Accelerator(product="x", count=4, tensor_parallel_size=4, topology_label="tpu/shape")
    assert to_manifest(AcceleratorSpec, usual)["topology_label"] is None
    assert to_manifest(AcceleratorSpec, other)["topology_label"] == "tpu/shape"


def test_numbers_are_written_with_six_decimals_at_most() -> None:
    assert [decimal(value) for value in (0.05, 8.0, 1e-06, 0.1234567)] == ["0.05", "8", "0.000001", "0.123457"]
    assert duration("1h30m5s") == timedelta(hours=1, minutes=30, seconds=5)
