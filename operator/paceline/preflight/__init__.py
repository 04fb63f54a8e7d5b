"""Model facts → findings: what would go wrong, said before any GPU is taken. Pure."""

from paceline.preflight.cases import Finding
from paceline.preflight.config import model_facts
from paceline.preflight.facts import (
    Fetched,
    FetchedModel,
    ModelFacts,
    read_facts,
    read_message,
    write_facts,
    write_message,
)
from paceline.preflight.rules import findings

__all__ = [
    "Fetched",
    "FetchedModel",
    "Finding",
    "ModelFacts",
    "findings",
    "model_facts",
    "read_facts",
    "read_message",
    "write_facts",
    "write_message",
]
