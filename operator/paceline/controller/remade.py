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
    uid: str
    times: int
    at: float

    @property
    def seconds(self) -> float:
        """Until it is made again."""
        return 0.0 if self.times < FREELY else min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (self.times - FREELY))


Name = tuple[Ref, str]
"""An object by its name, and the uid of its owner: who deletes an owner and makes it anew wants its children anew."""


@dataclass
class Remade:
    """What this process has made within the hour, oldest first."""

    clock: Callable[[], float] = time.monotonic
    made: dict[Name, Made] = field(default_factory=dict)

    def check(self, ref: Ref, manifest: Manifest) -> None:
        """Raises Invalid, which is told like a refusal, if it is too early to make this object once more."""
        self._forget()
        made = self.made.get(_name(ref, manifest))
        if made and self.clock() < made.at + made.seconds:
            message = (
                f"was made {made.times} times within the hour and is gone each time: look for what deletes it (a "
                f"policy, a janitor, another controller); the next attempt comes after {made.seconds:.0f} s"
            )
            raise Invalid(0, "DeletedAgain", f"{ref}: {message}")

    def note(self, ref: Ref, manifest: Manifest, uid: str) -> None:
        """It was made, or, if it has the uid of before, had only not been seen."""
        name = _name(ref, manifest)
        before = self.made.pop(name, None)
        again = before is not None and before.uid == uid
        times = before.times + (not again) if before else 1
        self.made[name] = Made(uid, times, before.at if before and again else self.clock())

    def deleted(self, ref: Ref) -> None:
        """By us."""
        for name in [name for name in self.made if name[0] == ref]:
            del self.made[name]

    def _forget(self) -> None:
        while self.made and (first := next(iter(self.made))) and self.made[first].at < self.clock() - FORGOTTEN_SECONDS:
            del self.made[first]


def _name(ref: Ref, manifest: Manifest) -> Name:
    owners = manifest["metadata"].get("ownerReferences") or [{}]
    return ref, str(owners[0].get("uid", ""))
