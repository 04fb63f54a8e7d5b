"""What the arms answered, as far as anybody asked: in a sentence, and by candidate."""

from collections.abc import Iterator

from paceline import core
from paceline.report.model import ArmOutputs, Manifest, Outputs
from paceline.report.read import number
from paceline.report.words import count

NOT_COMPARED = "Outputs were not compared: nothing is said about whether the arms answer alike."


def outputs(spec: Manifest, status: Manifest) -> Outputs:
    asked = spec.get("parity")
    if not asked:
        return Outputs(sentence=NOT_COMPARED, arms=())
    arms = tuple(_arms(status))
    default = core.Parity(samples=0)
    sentence = (
        f"Asked of every arm in each round: the first {count(asked.get('samples', 0), 'prompt')} of "
        f"{spec['workloads'][0]['name']}, one after another at temperature 0, at most "
        f"{count(asked.get('maxTokens', default.max_tokens), 'token')} each. A near tie is up to "
        f"{number(asked.get('nearTie')) or default.near_tie:g} nats by the baseline's own logprobs."
    )
    return Outputs(sentence=sentence if arms else f"{sentence} Nothing was compared so far.", arms=arms)


def _arms(status: Manifest) -> Iterator[ArmOutputs]:
    for verdict in status.get("armVerdicts") or ():
        if said := verdict.get("parity"):
            yield ArmOutputs(
                arm=verdict["arm"],
                unknown=said.get("unknown", ""),
                rounds=said.get("rounds", 0),
                samples=said.get("samples", 0),
                settled=said.get("settled", 0),
                identical=said.get("identical", 0),
                near_ties=said.get("nearTies", 0),
                diverged=said.get("diverged", 0),
                first=said.get("firstDivergence"),
                gap=number(said.get("largestGap")),
            )
