"""Which arms an engine and its backend can run: told by the engine's own rules, of which the search has none."""

from tests.unit.engines.sglang.servers import BASE, chain, server, wide

from paceline.engines.grid import admitted


def test_what_the_backend_refuses_is_left_out_and_the_others_stay() -> None:
    arms = (BASE, chain(name="chain"), wide(name="wide"))
    kept, refused = admitted(server("--attention-backend=trtllm_mha"), arms)
    assert [arm.name for arm in kept] == ["baseline", "chain"]
    assert list(refused) == ["wide"]
    assert "trtllm_mha" in refused["wide"]


def test_a_backend_that_drafts_trees_keeps_them() -> None:
    arms = (BASE, chain(name="chain"), wide(name="wide"))
    assert admitted(server("--attention-backend=triton"), arms) == (arms, {})
