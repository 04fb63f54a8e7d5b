"""Variables that fake acceptance or expert routing: refused for every engine.

An engine's test switch fakes how many drafts are accepted: candidates then write wrong text as fast as the switch says,
and the gate would promote them. We check `engine.env` and a pod template's `env`; Secrets and images cannot be checked.
vLLM has such a switch only in `--speculative-config` (`rejection_sample_method: synthetic`), which Paceline renders; it
is refused as an argument.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Server
from paceline.engines.pod_template import SERVER
from paceline.engines.refusal import Refusal

RULE = "simulated-acceptance"
FAKED: Mapping[str, str] = {
    # Defined in environ.py:527 to 535 (0.5.23) and :163 (0.5.6). SGLang reads SGL_X as SGLANG_X (0.5.23
    # environ.py:2298).
    "SGLANG_SIMULATE_ACC_": "acceptance",
    "SGLANG_DSPARK_SIMULATE_": "acceptance",
    # sglang-jax 0.1.0rc0 speculative/spec_utils.py:22; SGLang 0.4.5 speculative/eagle_utils.py:42.
    "SIMULATE_ACC_": "acceptance",
    # 0.5.23 environ.py:536: tokens go to the experts in turn, and the router is ignored.
    "SGLANG_SIMULATE_": "the routing of experts",
}
"""Prefixes of variables → what they fake."""


def refusals(server: Server) -> Iterator[Refusal]:
    for path, name in (*_own(server), *of_the_template(server)):
        read_as = name.replace("SGL_", "SGLANG_", 1) if name.startswith("SGL_") else name
        faked = next((faked for prefix, faked in FAKED.items() if read_as.startswith(prefix)), None)
        if faked:
            message = f"{name} fakes {faked}: no real server has this speed, no model writes this text; remove it"
            yield Refusal(rule=RULE, path=path, message=message)


def _own(server: Server) -> Iterator[tuple[str, str]]:
    for i, variable in enumerate(server.engine.env):
        yield f"engine.env[{i}].name", str(variable["name"])


def of_the_template(server: Server) -> Iterator[tuple[str, str]]:
    """Variables of the template's server container; `pod_template` refuses wrong shapes."""
    spec = server.engine.pod_template.get("spec")
    for i, container in enumerate(_maps(spec.get("containers"))) if isinstance(spec, Mapping) else ():
        for j, variable in enumerate(_maps(container.get("env"))) if container.get("name") == SERVER else ():
            yield f"engine.podTemplate.spec.containers[{i}].env[{j}].name", str(variable.get("name", ""))


def _maps(items: Any) -> list[Mapping[str, Any]]:
    return [item if isinstance(item, Mapping) else {} for item in items] if isinstance(items, list | tuple) else []
