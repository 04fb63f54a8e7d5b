"""A run's rounds as BenchmarkRounds: written once, and counted only once they exist (decision 0102)."""

from collections.abc import Iterable

from paceline.api.round import ROUND_KIND, Round, belongs, in_order
from paceline.core import RunSpec
from paceline.core.manifest import Manifest, Object
from paceline.core.names import DEPLOYMENT_LABEL, POOL_LABEL, RUN_LABEL, round_name
from paceline.core.record import from_status, to_status
from paceline.evidence import fingerprint
from paceline.render import Owner
from paceline.render.common import API_VERSION, metadata


def counting_rounds(run: Object, mine: Iterable[Object]) -> tuple[Round, ...]:
    """The run's own rounds, in order; of several with the same round and try, the one with the matching name."""
    name = str(run["metadata"]["name"])
    found: dict[tuple[int, int], Round] = {}
    for one in mine:
        round = from_status(Round, one["spec"])
        if (round.round, round.try_) not in found or one["metadata"]["name"] == round_name(
            name, round.round, round.try_
        ):
            found[round.round, round.try_] = round
    return in_order(found.values())


def of_its_question(run: Object, objects: Iterable[Object]) -> tuple[Object, ...]:
    """The BenchmarkRounds that belong to the run and measured its question. Sorted by name, so that the order of a list
    does not matter."""
    measured = fingerprint(run["spec"])
    mine = [one for one in objects if belongs(one, run) and one["spec"].get("fingerprint") == measured]
    return tuple(sorted(mine, key=lambda one: str(one["metadata"]["name"])))


def fitting(spec: RunSpec, rounds: Iterable[Round]) -> tuple[Round, ...]:
    """Rounds with only arms and workloads of the run: other rounds may have been written by anyone."""
    arms, loads = {arm.name for arm in spec.arms}, {workload.name for workload in spec.workloads}
    return tuple(
        one
        for one in rounds
        if arms >= {replicate.arm for replicate in one.replicates} | {point.arm for point in one.points}
        and loads >= {point.workload for point in one.points}
    )


def new(rounds: Iterable[Round], recorded: Iterable[Round]) -> tuple[Round, ...]:
    """Rounds not recorded yet. A record with the same number but another Job is foreign."""
    job_of = {(one.round, one.try_): one.job for one in recorded}

    def known(one: Round) -> bool:
        job = job_of.get((one.round, one.try_))
        return job is not None and (not one.job or job == one.job)

    return tuple(one for one in rounds if not known(one))


def ownerless_rounds(mine: Iterable[Object]) -> tuple[Object, ...]:
    """BenchmarkRounds without an owner: from a backup or a file."""
    return tuple(one for one in mine if not one["metadata"].get("ownerReferences"))


def manifest(owner: Owner, run: Object, round: Round) -> Manifest:
    """The BenchmarkRound, with the labels for finding it by run, deployment and pool."""
    name, labels = round_name(owner.name, round.round, round.try_), run["metadata"].get("labels") or {}
    found_by = {label: labels[label] for label in (DEPLOYMENT_LABEL, POOL_LABEL) if label in labels}
    return {
        "apiVersion": API_VERSION,
        "kind": ROUND_KIND,
        "metadata": metadata(name, owner, {RUN_LABEL: owner.name, **found_by}),
        "spec": {**to_status(round), "fingerprint": fingerprint(run["spec"])},
    }
