"""How often an object was made that somebody deletes.

Kept in the process alone: a new one has its first attempts anew, and nothing is written for it (a count in status would
be one write more before each attempt, and an operator that dies after each write would never get to the attempt).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.kube import Invalid, Manifest, Ref

FREELY = 3
"""Times within the hour that an object is made at once."""
FIRST_SECONDS, LONGEST_SECONDS = 15.0, 600.0
"""Between one attempt and the next after these, doubled with each."""
FORGOTTEN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Made:
    owner: str
    """Its owner's uid: who deletes an owner and makes it anew wants its children anew."""
    uid: str
    times: int
    at: float

    @property
    def seconds(self) -> float:
        """Until it is made again."""
        return 0.0 if self.times < FREELY else min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (self.times - FREELY))


@dataclass
class Remade:
    """What this process has made within the hour, oldest first."""

    clock: Callable[[], float] = time.monotonic
    made: dict[Ref, Made] = field(default_factory=dict)

    def check(self, ref: Ref, manifest: Manifest) -> None:
        """Raises Invalid, which is told like a refusal, if it is too early to make this object once more."""
        self._forget()
        made = self._made(ref, manifest)
        if made and self.clock() < made.at + made.seconds:
            message = (
                f"was made {made.times} times within the hour and is gone each time: look for what deletes it (a "
                f"policy, a janitor, another controller); the next attempt comes after {made.seconds:.0f} s"
            )
            raise Invalid(0, "DeletedAgain", f"{ref}: {message}")

    def note(self, ref: Ref, manifest: Manifest, uid: str) -> None:
        """It was made, or, if it has the uid of before, had only not been seen."""
        before = self._made(ref, manifest)
        if before and before.uid == uid:
            return
        self.made.pop(ref, None)  # to be the youngest
        self.made[ref] = Made(_owner(manifest), uid, before.times + 1 if before else 1, self.clock())

    def deleted(self, ref: Ref) -> None:
        """By us."""
        self.made.pop(ref, None)

    def _made(self, ref: Ref, manifest: Manifest) -> Made | None:
        made = self.made.get(ref)
        return made if made and made.owner == _owner(manifest) else None

    def _forget(self) -> None:
        while self.made and (first := next(iter(self.made))) and self.made[first].at < self.clock() - FORGOTTEN_SECONDS:
            del self.made[first]


def _owner(manifest: Manifest) -> str:
    owners = manifest["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid", ""))
