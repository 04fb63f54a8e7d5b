"""What people do to a deployment, as in tests/fault/stories.py, in real time."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.fault.nature import what
from tests.fault.real.case import Case
from tests.fault.real.history import Past
from tests.fault.scenarios import SCENARIOS
from tests.fault.stories import another_image, example, too_strict
from tests.fault.test_borrow import borrowing
from tests.support.containers import arms_of

from paceline.core import BASELINE
from paceline.kube import Manifest
from paceline.kube.resources import JOB
from paceline.render.serving import ARM_LABEL

Act = Callable[[Case], Awaitable[object]]
Goal = Callable[[Past], bool]
DEADLINE = "15s"
"""How long a roll-out may take: a story waits for its end."""


@dataclass(frozen=True, kw_only=True)
class Story:
    """After `first`, undisturbed, `act` is what the faults fall on; the story is over when all is at rest."""

    act: Act
    first: tuple["Step", ...] = ()
    then: tuple["Step", ...] = ()
    """Goes on after `act`, while faults may happen."""
    ready: Callable[[Manifest], bool] = lambda pod: True
    holds: Callable[[Manifest], bool] = lambda pod: False
    """As of `Land`."""
    tells: bool = True
    """The same Events each time. What is told of a deadline depends on how fast the machine is."""
    either: str = "\0"
    """A difference with this in it is none."""


@dataclass(frozen=True)
class Step:
    """Something that is done, and what is waited for before it; None: that all is at rest."""

    act: Act
    after: Goal | None = None


def only_the_baseline(pod: Manifest) -> bool:
    return what(pod) != "server" or pod["metadata"]["labels"][ARM_LABEL] == BASELINE


def is_round(pod: Manifest) -> bool:
    return what(pod) == "round"


def of_the_published_image(pod: Manifest) -> bool:
    image = example()["spec"]["engine"]["image"]
    return is_round(pod) and any(container["image"] == image for container in arms_of(pod))


def measures(past: Past) -> bool:
    return any(what(job) == "round" for job in past.of(JOB))


def impatient() -> Manifest:
    manifest = example("latency")
    manifest["spec"]["promotion"] = {"progressDeadline": DEADLINE}
    return manifest


def applying(manifest: Callable[[], Manifest]) -> Act:
    return lambda case: case.apply(manifest())


def editing(change: Callable[[dict[str, Any]], object]) -> Act:
    return lambda case: case.edit(change)


async def another_release(case: Case) -> None:
    """Of the operator: its image is that of the rounds, too."""
    case.settings = replace(case.settings, image="paceline:next")
    case.restart()
    await case.release()


async def go_on(case: Case) -> None:
    await case.edit(lambda spec: spec.update(suspend=False))
    await case.release()


DEPLOY = applying(lambda: example("latency"))
DEPLOYED = (Step(DEPLOY),)
suspend = editing(lambda spec: spec.update(suspend=True))

STORIES: Mapping[str, Story] = {
    "first deploy and promotion": Story(act=DEPLOY),
    "two pools": Story(act=applying(example)),
    "rejection": Story(act=applying(too_strict)),
    "another image": Story(act=editing(another_image), first=DEPLOYED),
    "superseded in its first round": Story(
        act=DEPLOY,
        then=(Step(editing(another_image), after=measures),),
        holds=of_the_published_image,
        either=SCENARIOS["superseded in its first round"].either,
    ),
    "suspended in its first round, and resumed": Story(
        act=DEPLOY, then=(Step(suspend, after=measures), Step(go_on)), holds=is_round
    ),
    "rollback by a person": Story(
        act=lambda case: case.annotate("rollback.paceline.dev/latency", "@monday"), first=DEPLOYED
    ),
    "a candidate that is never ready: held": Story(act=applying(impatient), ready=only_the_baseline, tells=False),
    "a loan": Story(act=applying(borrowing)),
    "deleted": Story(act=Case.delete, first=DEPLOYED),
    "deleted in its first round": Story(act=DEPLOY, then=(Step(Case.delete, after=measures),), holds=is_round),
    "another release of the operator in its first round": Story(
        act=DEPLOY, then=(Step(another_release, after=measures),), holds=is_round
    ),
}
