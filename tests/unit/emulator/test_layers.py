"""Which states an emulated head is given, and what comes of it: as read in the releases, which tests of the operator's
own table (tests/unit/engines/sglang/test_captured.py) say once more."""

import pytest

from paceline_emulator.layers import TRAINED_ON, WORTH, states, worth
from paceline_emulator.models import Model

NEXT = Model(path="target", config={"architectures": ["Qwen3NextForCausalLM"], "num_hidden_layers": 48})
LLAMA = Model(path="target", config={"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32})
TRAINED = [3, 27, 47]


def head(*named: int, **more: object) -> Model:
    eagle = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(named)}} if named else {}
    return Model(path="head", config={"hidden_size": 2048, TRAINED_ON: TRAINED, **eagle, **more})


@pytest.mark.parametrize(
    ("version", "named", "verify", "is_worth"),
    [
        ("0.5.6", (), (3, 27, 47), 1.0),
        ("0.5.6", (2, 26, 46), (3, 27, 47), 1.0),
        ("0.5.23", (), (2, 24, 45), WORTH),
        ("0.5.23", (2, 26, 46), (3, 27, 47), 1.0),
        ("0.5.23", (2, 22, 46), (3, 23, 47), WORTH),
    ],
)
def test_it_is_worth_less_on_states_that_it_was_not_trained_on(
    version: str, named: tuple[int, ...], verify: tuple[int, ...], is_worth: float
) -> None:
    found = states(version, NEXT, head(*named))
    assert (found.verify, found.dies) == (verify, None)
    assert worth(found, head(*named)) == is_worth


def test_0_5_6_verifies_in_graphs_with_layers_of_its_own() -> None:
    found = states("0.5.6", LLAMA, head(3, 16, 29))
    assert (found.prefill, found.verify) == ((4, 17, 30), (2, 16, 29))


def test_a_layer_too_far_ends_0_5_23_while_it_loads_and_the_fork_at_its_first_request() -> None:
    newest, fork = states("0.5.23", NEXT, head(3, 23, 47)), states("0.5.6", NEXT, head(3, 23, 47))
    assert (newest.dies, newest.loading) == ("IndexError: index 48 is out of range", True)
    said = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x4096 and 6144x2048)"
    assert (fork.dies, fork.loading) == (said, False)


def test_a_head_that_says_nothing_of_its_training_is_content() -> None:
    plain = Model(path="head", config={"hidden_size": 2048})
    assert worth(states("0.5.23", NEXT, plain), plain) == 1.0
    assert worth(None, None) == 1.0
