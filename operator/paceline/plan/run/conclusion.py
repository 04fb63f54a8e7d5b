"""The end of a run."""

from dataclasses import dataclass

from paceline.api import Reason
from paceline.api.run_status import RunVerdict
from paceline.core import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Why the run ends. `verdict` is None for a superseded or aborted run."""

    reason: Reason
    message: str
    verdict: RunVerdict | None = None


def error(message: str, reason: str = "InvalidSpec") -> Conclusion:
    """End a run with the verdict Error. Without a verdict the deployment would treat the run as superseded and create
    it again."""
    verdict = RunVerdict(outcome=Outcome.ERROR.value, winner="", rounds=0, reason=reason, message=message)
    return Conclusion(reason=Reason.RunError, message=message, verdict=verdict)
