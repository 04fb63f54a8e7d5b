"""Model facts → findings: problems that are detected before any GPU is taken. Pure."""

from paceline.core import ModelFacts
from paceline.engines.model_rules import ModelFinding
from paceline.preflight.config import model_facts
from paceline.preflight.rules import findings

__all__ = ["ModelFacts", "ModelFinding", "findings", "model_facts"]
