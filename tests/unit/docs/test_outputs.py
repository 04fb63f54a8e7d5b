"""Nothing is said about the sameness of outputs but where it is said what shows it: `parity`."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLACES = ("*.md", "docs/**/*.md", "examples/**/*", "charts/**/*", "crds/*", "operator/paceline/**/*", "dev/**/*")
EXEMPT = (
    "operator/paceline/pods/datasets",  # what models are asked says nothing about Paceline
    "docs/states.md",  # names of stories, which may speak of what parity shows
    "operator/paceline/pods/round/parity.py",
    "operator/paceline/gate/outputs.py",
)
"""The last two are what shows it."""
TEXT = {".md", ".yaml", ".py", ".j2", ".tpl", ".txt", ".toml", ".sh", ".json", ""}

CLAIM = re.compile(
    r"lossless"
    r"|without (?:any )?loss"
    r"|bit-?(?:wise|by-bit)? ?identical"
    r"|(?:same|identical|unchanged|equal) (?:outputs?|answers?|texts?|tokens|completions?)\b"
    r"|(?:outputs?|answers?|texts?|completions?) (?:is|are|stays?|remains?)"
    r" (?:the same|identical|unchanged|equal|alike)"
    r"|answers? (?:alike|identically)"
    r"|writes? the same",
    re.IGNORECASE,
)
SHOWN = re.compile(r"parity|\b0018\b|temperature 0|compared", re.IGNORECASE)
"""A paragraph that speaks of how it is shown."""


def files() -> list[Path]:
    found = {path for place in PLACES for path in ROOT.glob(place) if path.is_file() and path.suffix in TEXT}
    return sorted(path for path in found if not str(path.relative_to(ROOT)).startswith(EXEMPT))


def claims(text: str) -> list[str]:
    """Paragraphs that say outputs are the same, and not by what that is shown."""
    paragraphs = re.split(r"\n\s*\n", text)
    return [one for one in paragraphs if CLAIM.search(" ".join(one.split())) and not SHOWN.search(one)]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_it_claims_no_losslessness_without_parity(path: Path) -> None:
    assert claims(path.read_text(errors="replace")) == []


@pytest.mark.parametrize(
    "said",
    [
        "Speculation is lossless.",
        "The candidate gives identical\noutputs.",
        "Its answers are the same, only faster.",
        "A fast server with unchanged outputs.",
        "bit-identical to the baseline",
        "faster without any loss",
    ],
)
def test_a_claim_is_seen(said: str) -> None:
    assert claims(f"Something else.\n\n{said}") == [said]
    assert claims(f"{said} `parity` shows it.") == []
