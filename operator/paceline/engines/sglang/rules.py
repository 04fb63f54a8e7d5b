"""What is refused before a server is started: every rule, in the order in which it is told."""

from dataclasses import replace

from paceline.core import Arm, Server
from paceline.engines.adapter import Refusal
from paceline.engines.sglang import arguments, custom, draft_rules, features, key_rules, pins, shapes
from paceline.engines.sglang.case import Case, Rule

RULES: tuple[Rule, ...] = (
    *shapes.RULES,
    *pins.RULES,
    *draft_rules.RULES,
    *arguments.RULES,
    *key_rules.RULES,
    *features.RULES,
    *custom.RULES,
)


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    case = Case(server=server, arms=arms)
    found = (replace(refusal, rule=rule.id) for rule in RULES for refusal in rule.broken(case))
    return tuple(dict.fromkeys(found))
