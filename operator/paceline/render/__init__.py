"""One builder per child object; pure functions from core types to plain dicts."""

from paceline.render.cache import claim, fetch_job, fetch_name
from paceline.render.common import Owner, Settings
from paceline.render.group import group_name
from paceline.render.revision import controller_revision, revision_of
from paceline.render.round_job import benchmark_run, round_claims, round_job
from paceline.render.serving import claim_templates, rendering, servers, service

__all__ = [
    "Owner",
    "Settings",
    "benchmark_run",
    "claim",
    "claim_templates",
    "controller_revision",
    "fetch_job",
    "fetch_name",
    "group_name",
    "rendering",
    "revision_of",
    "round_claims",
    "round_job",
    "servers",
    "service",
]
