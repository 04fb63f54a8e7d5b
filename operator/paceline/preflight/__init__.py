"""Model facts → findings: what would go wrong, said before any GPU is taken. Pure."""

from paceline.preflight.config import model_facts
from paceline.preflight.facts import Fetched, FetchedModel, ModelFacts, read_message, write_message
from paceline.preflight.rules import Finding, findings

__all__ = [
    "Fetched",
    "FetchedModel",
    "Finding",
    "ModelFacts",
    "findings",
    "model_facts",
    "read_message",
    "write_message",
]
