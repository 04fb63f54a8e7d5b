"""What makes acceptance, or the routing of experts, up: in no environment of a server, on any engine.

An engine's own test switch fakes how many drafts are accepted: the text is wrong and the speed as good as one likes, on
candidates alone, so a gate would promote it. It can be named in `engine.env` and in a pod template's `env`; what a
Secret or an image holds cannot be seen here. vLLM has such a switch in `--speculative-config` alone
(`rejection_sample_method: synthetic`), which is Paceline's and refused as an argument.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Server
from paceline.engines.adapter import Refusal
from paceline.engines.pod_template import SERVER

RULE = "simulated-acceptance"
MADE_UP: Mapping[str, str] = {
    # 0.5.23 environ.py:527 to 535 and 0.5.6 environ.py:163; SGLang reads SGL_X as SGLANG_X (0.5.23 environ.py:2298).
    "SGLANG_SIMULATE_ACC_": "acceptance",
    "SGLANG_DSPARK_SIMULATE_": "acceptance",
    # sglang-jax 0.1.0rc0 speculative/spec_utils.py:22; SGLang 0.4.5 speculative/eagle_utils.py:42.
    "SIMULATE_ACC_": "acceptance",
    # 0.5.23 environ.py:536: every token goes to experts by turns, whatever the router says.
    "SGLANG_SIMULATE_": "the routing of experts",
}
"""How variables begin, and what they make up."""


def refusals(server: Server) -> Iterator[Refusal]:
    for path, name in (*_own(server), *_of_the_template(server)):
        read_as = name.replace("SGL_", "SGLANG_", 1) if name.startswith("SGL_") else name
        what = next((what for beginning, what in MADE_UP.items() if read_as.startswith(beginning)), None)
        if what:
            message = f"{name} makes {what} up: its speed is no server's, its text no model's; remove it"
            yield Refusal(rule=RULE, path=path, message=message)


def _own(server: Server) -> Iterator[tuple[str, str]]:
    for i, variable in enumerate(server.engine.env):
        yield f"engine.env[{i}].name", str(variable["name"])


def _of_the_template(server: Server) -> Iterator[tuple[str, str]]:
    """Of the server's container; what has the wrong shape is told by `pod_template`."""
    spec = server.engine.pod_template.get("spec")
    for i, container in enumerate(_maps(spec.get("containers"))) if isinstance(spec, Mapping) else ():
        for j, variable in enumerate(_maps(container.get("env"))) if container.get("name") == SERVER else ():
            yield f"engine.podTemplate.spec.containers[{i}].env[{j}].name", str(variable.get("name", ""))


def _maps(items: Any) -> list[Mapping[str, Any]]:
    return [item if isinstance(item, Mapping) else {} for item in items] if isinstance(items, list | tuple) else []
