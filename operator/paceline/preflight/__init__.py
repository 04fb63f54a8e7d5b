"""Model facts → findings: what would go wrong, known before any GPU is taken. Pure."""

from paceline.core import ModelFacts
from paceline.engines.model_rules import Finding
from paceline.preflight.config import model_facts
from paceline.preflight.rules import findings

__all__ = ["Finding", "ModelFacts", "findings", "model_facts"]
