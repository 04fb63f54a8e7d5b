"""A pool in one pass, with what it is to serve: chosen once, and read by each of its steps."""

from dataclasses import dataclass

from paceline.plan.deployment.choose import Choice, as_chosen, has_served
from paceline.plan.deployment.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    pool: Pool
    choice: Choice

    @property
    def settled(self) -> bool:
        """The servers are what was chosen: all ready, and none of another revision left."""
        return as_chosen(self.pool, self.choice)

    @property
    def has_served(self) -> bool:
        """All servers were of the chosen revision and ready since it was chosen last."""
        return has_served(self.pool, self.choice.revision)
