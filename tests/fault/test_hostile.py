"""One deployment that is strange or means harm, beside a good one in the same namespace: the good one is promoted.

tests/api/test_hostile.py does the same with objects that are too large or too deep for a real API server's clients.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.support import admitted
from tests.support.memory import Exit

from paceline.api.round import with_rounds
from paceline.cli.validate import wrong
from paceline.controller.kinds import BENCHMARK_ROUND, BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core.names import DEPLOYMENT_LABEL
from paceline.evidence.result_log import PREFIX
from paceline.kube import Manifest, Ref
from paceline.kube.resources import DEPLOYMENT

HOSTILE = "hostile"
STRANGE = {
    "composed": "caf\u00e9",
    "decomposed": "cafe\u0301",
    "right to left": "\u202eabc\u202c",
    "zero width": "a\u200bb\ufeff",
    "emoji": "👩\u200d🚀",
    "terminal": "a\x1b[2J\x07b",
    "lines": "a\r\nb\n\tc",
    "markup": "<img src=x onerror=alert(1)>",
    "template": "$(HOME) ${HOME} {{ .Values }} %(x)s {0}",
}
Edit = Callable[[dict[str, Any]], object]


def served(text: str) -> Edit:
    return lambda spec: spec["target"].update(servedName=text)


def everywhere(spec: dict[str, Any]) -> None:
    """Each strange text in a variable and in an annotation of the pods."""
    names = {text: f"STRANGE_{number}" for number, text in enumerate(STRANGE.values())}
    spec["engine"]["env"] = [{"name": name, "value": text} for text, name in names.items()]
    annotations = {f"example.com/{name}": text for text, name in names.items()}
    spec["engine"]["podTemplate"] = {"metadata": {"annotations": annotations}}


def beside(edit: Edit, spoil: Exit | None = None) -> World:
    """A world in which both have come to rest. `spoil`: how the rounds of the hostile one end."""

    async def story() -> World:
        async with World() as world:
            if spoil:
                world.nature.spoil = lambda pod: spoil if pod["metadata"]["name"].startswith(HOSTILE) else None
            world.operate()
            manifest = example("latency")
            manifest["metadata"]["name"] = HOSTILE
            edit(manifest["spec"])
            world.apply(manifest)
            world.apply(example("latency"))
            await world.settle()
        return world

    return run(story())


def of(obj: Manifest) -> str:
    """The deployment that an object belongs to."""
    return str(obj["metadata"].get("labels", {}).get(DEPLOYMENT_LABEL, ""))


def status(world: World, name: str) -> dict[str, Any]:
    found = world.cluster.get(Ref(SPECULATIVE_DEPLOYMENT, NAMESPACE, name))
    assert found is not None
    return dict(found["status"])


def serves(world: World, name: str) -> str:
    (pool,) = status(world, name)["pools"]
    return str((pool.get("serving") or {}).get("arm", ""))


def says(world: World, name: str, kind: str) -> str:
    """Reason and message of a condition; "" where there is none."""
    conditions = status(world, name).get("conditions", ())
    return next((f"{one['reason']}: {one['message']}" for one in conditions if one["type"] == kind), "")


def test_strange_text_is_passed_on_as_it_is() -> None:
    """No byte of it is changed, not even composed with the one before, and both are promoted."""
    world = beside(everywhere)
    assert (serves(world, NAME), serves(world, HOSTILE)) == ("wide", "wide")
    (there,) = [found for found in world.cluster.list(DEPLOYMENT).items if of(found) == HOSTILE]
    template = there["spec"]["template"]
    variables = [v for c in template["spec"]["containers"] for v in c.get("env", ())]
    assert {v["value"] for v in variables if v["name"].startswith("STRANGE_")} == {*STRANGE.values()}
    assert {*STRANGE.values()} <= {*template["metadata"]["annotations"].values()}


INVISIBLE = ("right to left", "zero width", "emoji")
LONGEST_NAME = "".join(STRANGE[name] for name in INVISIBLE) + "n" * 180


@pytest.mark.parametrize("name", [LONGEST_NAME, "\x1b[2J\x07model"], ids=["invisible", "terminal"])
def test_a_name_in_requests_with_what_nobody_sees_is_measured_and_served(name: str) -> None:
    """A round makes what a server says fit to show: its name must not count as another for that, which looks alike."""
    world = beside(served(name))
    assert (serves(world, NAME), serves(world, HOSTILE)) == ("wide", "wide")


@pytest.mark.parametrize("name", [STRANGE["lines"], STRANGE["markup"], STRANGE["template"], "n" * 201])
def test_a_name_that_no_request_can_have_is_refused_by_its_field(name: str) -> None:
    manifest = example("latency")
    served(name)(manifest["spec"])
    (told,) = map(str, wrong(manifest))
    assert told.startswith("spec.target.servedName: ")
    assert told.isprintable()


def test_a_template_of_another_type_is_stalled_by_its_field() -> None:
    world = beside(lambda spec: spec["engine"].update(podTemplate={"spec": {"containers": "none"}}))
    assert serves(world, NAME) == "wide"
    assert says(world, HOSTILE, "Stalled").startswith("InvalidSpec: ")
    assert "spec.engine.podTemplate" in says(world, HOSTILE, "Stalled")
    assert [found for found in world.cluster.list(DEPLOYMENT).items if of(found) == HOSTILE] == []


LONGEST = 4096
LOGS = {
    "nothing": "",
    "zeros": "\0" * LONGEST,
    "a line without a digest": PREFIX + "0" * LONGEST,
    "megabytes": "x" * (1 << 22),
    "markup that moves a terminal": "<script>alert(1)</script>\x1b]0;owned\x07\u202e" + "[" * 4000,
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_rounds_that_leave_garbage_end_in_an_error_in_words(log: str) -> None:
    world = beside(lambda _: None, Exit(log=log))
    assert serves(world, NAME) == "wide"
    assert serves(world, HOSTILE) == "baseline"
    (run,) = [found for found in world.cluster.list(BENCHMARK_RUN).items if of(found) == HOSTILE]
    admitted.check("BenchmarkRun", run["status"])
    lost = [entry["error"] for entry in with_rounds(run, world.cluster.list(BENCHMARK_ROUND).items)["rounds"]]
    assert lost
    assert all(error.isprintable() and 0 < len(error) <= LONGEST for error in lost)
    (failed,) = [one for one in run["status"]["conditions"] if one["type"] == "Failed"]
    assert (failed["status"], failed["reason"]) == ("True", "Error")
    assert says(world, HOSTILE, "Decided").startswith("BenchmarkError: ")
