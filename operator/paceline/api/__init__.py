"""Our kinds: their fields, what is wrong with a manifest, and the way from a manifest to core types."""

from paceline.api.convert import deployment, stored
from paceline.api.convert_run import run, run_manifest_spec, served, served_spec
from paceline.api.crd import crds
from paceline.api.problems import InvalidManifestError, Problem, problems
from paceline.api.profiled import profile_of, with_profile
from paceline.api.reasons import Cause, Reason, conditions

__all__ = [
    "Cause",
    "InvalidManifestError",
    "Problem",
    "Reason",
    "conditions",
    "crds",
    "deployment",
    "problems",
    "profile_of",
    "run",
    "run_manifest_spec",
    "served",
    "served_spec",
    "stored",
    "with_profile",
]
