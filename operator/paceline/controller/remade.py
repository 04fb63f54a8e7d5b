"""Counts how often an object was created again after someone deleted it.

Kept in memory only: a new process starts with fresh attempts, and no write is needed. (A count in status would cost a
write before each attempt, and an operator that crashes after each write would never attempt it.)
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.kube import Invalid, Manifest, Ref

FREELY = 3
"""How often within an hour an object is created without delay."""
FIRST_SECONDS, LONGEST_SECONDS = 15.0, 600.0
"""Seconds between further attempts: the first delay, doubled each time up to the longest."""
FORGOTTEN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Made:
    owner: str
    """Uid of the owner: the count starts again for a recreated owner, whose children must be created again."""
    uid: str
    times: int
    at: float

    @property
    def seconds(self) -> float:
        """Seconds until the next attempt."""
        return 0.0 if self.times < FREELY else min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (self.times - FREELY))


@dataclass
class Remade:
    """Objects created by this process within the hour, oldest first."""

    clock: Callable[[], float] = time.monotonic
    made: dict[Ref, Made] = field(default_factory=dict)

    def check(self, ref: Ref, manifest: Manifest) -> None:
        """Raises Invalid, which is reported like a refusal, if it is too early to create this object again."""
        self._forget()
        made = self._made(ref, manifest)
        if made and self.clock() < made.at + made.seconds:
            message = (
                f"was made {made.times} times within the hour and deleted each time: find what deletes it (a "
                f"policy, a janitor, another controller); the next attempt comes after {made.seconds:.0f} s"
            )
            raise Invalid(0, "DeletedAgain", f"{ref}: {message}")

    def note(self, ref: Ref, manifest: Manifest, uid: str) -> None:
        """Record a creation; the same uid as before means that we had only not seen the object."""
        before = self._made(ref, manifest)
        if before and before.uid == uid:
            return
        self.made.pop(ref, None)  # reinsert as the youngest
        self.made[ref] = Made(_owner(manifest), uid, before.times + 1 if before else 1, self.clock())

    def deleted(self, ref: Ref) -> None:
        """We deleted the object ourselves, so it does not count."""
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
