"""Servers that the cluster keeps from starting for too long are reported as Stalled."""

from datetime import datetime

from paceline.plan.deployment.lasting import report_lasting
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.step import StepResult


def report_stuck_servers(rollout: Rollout, now: datetime) -> StepResult:
    """Stalled once the trouble of servers that are not settled has lasted for promotion.progressDeadline."""
    pool, servers = rollout.pool, rollout.pool.servers
    problem = servers.trouble if servers and not servers.settled else None
    return report_lasting(pool.snapshot, problem, pool.name, now)
