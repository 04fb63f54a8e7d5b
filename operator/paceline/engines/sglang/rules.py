"""Every rule of SGLang, in the order in which refusals are reported."""

from paceline.core import Arm, Server
from paceline.engines import rules
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang import (
    arguments,
    backends,
    custom,
    draft_rules,
    features,
    required_arguments,
    schedule,
    tree_rules,
    variables,
)

RULES: tuple[EngineRule[Configuration], ...] = (
    *tree_rules.RULES,
    *backends.RULES,
    *schedule.RULES,
    *required_arguments.RULES,
    *draft_rules.RULES,
    *variables.RULES,
    *arguments.RULES,
    *features.RULES,
    *custom.RULES,
)


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    flags = arguments.flag_list(server.engine.version)
    return rules.refusals(RULES, Configuration(server=server, arms=arms, flags=flags))
