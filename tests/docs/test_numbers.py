"""What README and docs/automation.md say in numbers is what the sources and the code have."""

import re
from pathlib import Path

from tests.support import published
from tests.support.published_loads import DYNAMIC_AT_8, LLM_D_BASELINE, LLM_D_EAGLE3, STATIC

from paceline.api import crds
from paceline.cli import COMMANDS
from paceline.cli.live.verdicts import EXIT_CODES
from paceline.gate.findings import Finding

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
AUTOMATION = (ROOT / "docs" / "automation.md").read_text()
GATE = (ROOT / "docs" / "gate.md").read_text()
RULE, _, REST = GATE.partition("\n## What to set\n")
TUNING = REST.partition("\n## ")[0]


def row(text: str, begins: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| {begins}"))


def test_when_not_to_use_speculation_has_the_published_numbers() -> None:
    wide = {at: published.throughput(name, at, published.WIDE) / published.throughput(name, at, None)
            for at, name in ((32, "terminal"), (1, "code"))}  # fmt: skip
    baseline, eagle = ({stage.rate: stage for stage in stages} for stages in (LLM_D_BASELINE, LLM_D_EAGLE3))
    assert f"{wide[32]:.2f}x tokens/s; for one user {wide[1]:.2f}x" in row(README, "Qwen3-Coder-Next")
    assert f"{eagle[8].throughput / baseline[8].throughput:.2f}x tokens/s" in row(README, "Qwen3-32B")
    assert f"{1 - eagle[1].tpot / baseline[1].tpot:.0%}".replace("%", " %") in row(README, "Qwen3-32B")
    assert f"{DYNAMIC_AT_8[0]:.0f} to {DYNAMIC_AT_8[1]:.0f} tokens/s; {STATIC[8]:.0f}" in row(README, "Qwen3.5-122B")


def test_every_command_has_its_exit_codes() -> None:
    table = AUTOMATION.partition("## Exit codes")[2].partition("## JSON")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in first for name in re.findall(r"`([a-z-]+)", cell)} == set(COMMANDS)
    assert {str(code) for code in EXIT_CODES.values()} <= set(re.findall(r"\d+", f"0 {table}"))


GOOD = {Finding.FASTER_THAN_MINIMUM, Finding.AS_FAST_AS_INCUMBENT, Finding.INCUMBENT_UNRELIABLE}


def test_every_finding_of_the_gate_but_the_good_ones_says_what_to_change() -> None:
    told = re.findall(r"(?m)^\| `(\w+)` \| .+? \| .+ \|$", RULE.partition("| finding |")[2].partition("\n\n")[0])
    assert sorted(told) == sorted({finding.value for finding in Finding} - {finding.value for finding in GOOD})


def test_a_field_of_the_guide_is_one_of_the_api() -> None:
    def names(schema: object) -> set[str]:
        if isinstance(schema, list):
            return {name for one in schema for name in names(one)}
        if not isinstance(schema, dict):
            return set()
        inner = {name for one in schema.values() for name in names(one)}
        return inner | (set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set())

    fields = names(crds())
    told = {part for path in re.findall(r"`([a-z]+[A-Za-z.]*)(?::[^`]*)?`", TUNING) for part in path.split(".")}
    assert len(told) > 15
    assert sorted(told - fields - {"retry"}) == []
