"""The children of examples/qwen3-coder-next.yaml as they are sent: golden/*.yaml, renewed by `PACELINE_GOLDEN=write`.

Three texts are told apart from the objects that carry them: the wrapper's script and the program that reads the energy,
which have tests of their own, and the question in PACELINE_ROUND, which is shown as what it says.
"""

import json
import re
from datetime import timedelta
from importlib import resources
from pathlib import Path
from typing import Any

from tests.support import golden
from tests.support.containers import arms_of, container
from tests.support.example import DEPLOYED, RUN, SETTINGS, arm, pool, run, server, spec

from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.plan.deployment.models import models_of
from paceline.render import (
    claim,
    controller_revision,
    fetch_job,
    rendering,
    revision_of,
    round_job,
    servers,
    service,
)
from paceline.render.round_job import round_plan
from paceline.render.where import Where

GOLDEN = Path(__file__).with_name("golden")


def served(name: str) -> dict[str, Any]:
    """The latency pool's Deployment with this arm."""
    kept = rendering(DEPLOYED, "latency", server(), arm(name), revision_of(server(), arm(name)), SETTINGS)
    return servers(DEPLOYED, "latency", kept, 1, timedelta(minutes=30), {"paceline.dev/why": "it was shown"}, True)


def measured() -> tuple[RoundPlan, dict[str, Any]]:
    """The first round of the latency pool's run, as planned and as sent."""
    asked = round_plan(RUN, run(), pool().spec.arms, number=0, try_=0)
    return asked, round_job(RUN, run(), asked, where=Where(avoid=("gpu-1",), namespaces=("others",)), settings=SETTINGS)


def test_deployment() -> None:
    golden.check(GOLDEN / "deployment.yaml", served("wide"))


def test_controller_revision_keeps_the_template_that_is_served() -> None:
    whole = served("wide")["spec"]["template"]
    kept = controller_revision(DEPLOYED, "latency", revision_of(server(), arm("wide")), {"template": whole})
    assert kept["data"]["template"] == whole
    golden.check(GOLDEN / "controllerrevision.yaml", {**kept, "data": {"template": "that of the Deployment"}})


def test_service() -> None:
    golden.check(GOLDEN / "service.yaml", service(DEPLOYED, "latency", nodes=1))


def started(word: str, environment: dict[str, str]) -> str:
    """A word of a container's command as the kubelet starts it."""

    def filled_in(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else environment.get(found[1], found[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", filled_in, word)


def test_round_job() -> None:
    _, job = measured()
    pod = job["spec"]["template"]
    question = container(pod, "client")["env"][0]
    assert question["name"] == ENVIRONMENT
    for one in arms_of(pod):
        for place, name in ((2, "wrapper.sh"), (4, "energy.py")):
            script = resources.files("paceline.render").joinpath(name).read_text()
            assert started(one["command"][place], {"members": "true", "now": "true"}) == script
            one["command"][place] = f"render/{name}, the whole of it"
    question["value"] = json.loads(question["value"])
    golden.check(GOLDEN / "round.yaml", job)


def test_fetch_job() -> None:
    golden.check(GOLDEN / "fetch.yaml", fetch_job(DEPLOYED, spec().server, models_of(spec()), SETTINGS))


def test_claim() -> None:
    wanted = spec().cache_claim
    assert wanted is not None
    golden.check(GOLDEN / "claim.yaml", claim(DEPLOYED.namespace, wanted))


def test_what_is_measured_is_what_is_served_byte_for_byte() -> None:
    """From the two objects as an API server would return them: JSON, twice."""
    _, job = measured()
    sent = json.loads(json.dumps(job))["spec"]["template"]
    asked = RoundPlan.from_json(container(sent, "client")["env"][0]["value"])
    for name in ("baseline", "wide"):
        serving = container(json.loads(json.dumps(served(name)))["spec"]["template"], "server")
        (measuring,) = (command for command in asked.arms if command.name == name)
        assert list(measuring.argv) == serving["command"]
        assert "args" not in serving, "arguments would come after the command"


def test_a_round_runs_in_the_container_that_serves() -> None:
    """The same image, environment, volumes and GPUs, so that nothing but the wrapper comes between."""
    _, job = measured()
    measuring = container(job["spec"]["template"], "server")
    serving = container(served("wide")["spec"]["template"], "server")
    for key in ("image", "resources", "terminationMessagePolicy"):
        assert measuring[key] == serving[key]
    of_the_wrapper = {"PACELINE_ARM": "baseline", "PACELINE_KERNELS": "/jit"}
    assert measuring["env"] == [*serving["env"], *({"name": n, "value": v} for n, v in of_the_wrapper.items())]
    assert [mount for mount in measuring["volumeMounts"] if not mount["name"].startswith("ctl")] == serving[
        "volumeMounts"
    ]


def test_a_question_survives_its_environment_variable() -> None:
    asked, _ = measured()
    assert RoundPlan.from_json(asked.to_json()) == asked
