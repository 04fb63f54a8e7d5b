"""A pool in one pass, with what it is to serve: chosen once, and read by each of its steps."""

from dataclasses import dataclass

from paceline.plan.deployment.choose import Choice, as_chosen, has_served
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.pull import Pull


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    pool: Pool
    choice: Choice
    pulls: tuple[Pull, ...] = ()
    """The image of its next servers, on each node that it is pulled on first."""

    @property
    def settled(self) -> bool:
        """The servers are what was chosen: all ready, and none of another revision left."""
        return as_chosen(self.pool, self.choice)

    @property
    def is_pulling(self) -> bool:
        """The servers stay as they are until an image is where it is needed."""
        return any(pull.problem for pull in self.pulls)

    @property
    def has_served(self) -> bool:
        """All servers were of the chosen revision and ready since it was chosen last."""
        return has_served(self.pool, self.choice.revision)
