"""The comparison of the arms' answers, if requested: in a sentence, and by candidate."""

from collections.abc import Iterator

from paceline import core
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.manifest import Object
from paceline.core.outputs import NEAR_TIE
from paceline.core.record import finite
from paceline.core.text import count
from paceline.report.model import ArmOutputs, OutputsView

NOT_COMPARED = "Outputs were not compared: it is unknown whether the arms answer alike."


def outputs_view(spec: Object, status: BenchmarkRunStatus) -> OutputsView:
    asked = (spec.get("gate") or {}).get("parity")
    if not asked:
        return OutputsView(sentence=NOT_COMPARED, arms=())
    arms = tuple(_arms(status))
    default = core.Parity(samples=1)
    sentence = (
        f"Asked of every arm in each round: the first {count(asked.get('samples', 0), 'prompt')} of "
        f"{spec['workloads'][0]['name']}, one after another at temperature 0, at most "
        f"{count(asked.get('maxTokens', default.max_tokens), 'token')} each. A near tie is up to "
        f"{NEAR_TIE:g} nats by the baseline's own logprobs."
    )
    return OutputsView(sentence=sentence if arms else f"{sentence} Nothing was compared so far.", arms=arms)


def _arms(status: BenchmarkRunStatus) -> Iterator[ArmOutputs]:
    for verdict in status.arm_verdicts or ():
        if parity := verdict.parity:
            yield ArmOutputs(
                arm=verdict.arm,
                unknown=parity.unknown,
                rounds=parity.rounds or 0,
                samples=parity.samples or 0,
                settled=parity.settled or 0,
                identical=parity.identical or 0,
                near_ties=parity.near_ties or 0,
                diverged=parity.diverged or 0,
                first=parity.first_divergence,
                gap=finite(parity.largest_gap),
            )
