"""What containers leave behind them: logs, termination messages, and what their environment asks of them."""

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st
from tests.support.rounds import PLAN
from tests.unit.evidence.results import result_of
from tests.unit.foreign.values import ANY, FEW, refused, said, spoiled, text_of

from paceline.core import ModelFacts
from paceline.core.names import snapshot_path
from paceline.evidence import AnswerError, RoundPlan, decode, encode
from paceline.evidence.result_log import DIGEST_LENGTH, PREFIX
from paceline.fetching import FetchFailure, FetchRequest, FetchResult
from paceline.fetching.result import FetchedModel

LINE = encode(result_of(2, 24))
RAW = json.loads(LINE.removeprefix(PREFIX).partition(" ")[2])


def closed(raw: object) -> str:
    text = json.dumps(raw)
    return f"{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]} {text}"


@given(text=text_of(LINE.encode()) | spoiled(RAW).map(closed))
@FEW
def test_a_rounds_log_is_a_result_or_an_answer_error(text: str) -> None:
    with refused(AnswerError):
        decode(text)


COMMIT = "0123456789" * 4
SOURCE = "hf://Qwen/Qwen3-Coder-Next"
FETCHED = FetchResult(
    models=(
        FetchedModel(source=SOURCE, revision="main", commit=COMMIT, bytes=1 << 37, path=snapshot_path(SOURCE, COMMIT)),
    ),
    facts={
        SOURCE: ModelFacts(
            architectures=("Qwen3NextForCausalLM",), hidden_size=2048, split_sizes={"intermediate_size": 48}
        )
    },
)
ANSWERS = json.loads(FETCHED.to_message())


@given(text=text_of(FETCHED.to_message().encode()) | (spoiled(ANSWERS) | ANY).map(said))
@FEW
def test_a_prefetch_has_ended_well_or_not(text: str) -> None:
    with refused(ValueError):
        found = FetchResult.from_message(text)
        assert FetchResult.from_message(found.to_message()).models == found.models


SAID = spoiled({"source": SOURCE, "part": "revision"}).map(lambda facts: f"{said(facts)}\nno such revision")


@given(text=st.text() | ANY.map(said) | SAID)
@FEW
def test_a_failed_prefetch_is_at_least_a_sentence(text: str) -> None:
    failure = FetchFailure.from_message(text)
    assert isinstance(failure.sentence, str)
    assert failure.part in ("source", "revision")


REQUEST = {
    "models": [{"source": SOURCE, "revision": "main", "commit": COMMIT}],
    "datasets": [{"source": "hf://datasets/a/b/c.jsonl"}],
    "path": "/models",
    "keepRevisions": 2,
    "inUse": [COMMIT],
    "user": "team/one",
    "trustRemoteCode": False,
}


@given(text=text_of(json.dumps(REQUEST).encode()) | (spoiled(REQUEST) | ANY).map(said))
@FEW
def test_a_prefetch_is_asked_or_refuses(text: str) -> None:
    with refused(ValueError):
        FetchRequest.from_json(text)


ASKED = json.loads(PLAN.to_json())


@given(text=text_of(PLAN.to_json().encode()) | (spoiled(ASKED) | ANY).map(said))
@FEW
def test_a_rounds_plan_is_read_or_refused(text: str) -> None:
    """Whoever may write Jobs may write one with our labels."""
    with refused(ValueError):
        RoundPlan.from_json(text)
