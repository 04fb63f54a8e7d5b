"""A simulated cluster in which every pass is planned three times: from what there is, from the same in another order,
and once more when it has been done."""

import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.passes import action_text
from tests.support.world import World

from paceline.kube.difference import needs_apply, stamped
from paceline.plan import deployment, run
from paceline.plan.simulation.cluster import Handle, handle_of
from paceline.plan.step import Action, Apply, Delete, Plan

OF_ITS_OUTCOME = ("no server waits for its image", "beyond revisionHistoryLimit")
"""Why something is deleted once what the pass before has written is there."""


@dataclass(repr=False)
class Twice(World):
    by_order: list[str] = field(default_factory=list)
    """Passes that planned otherwise when lists came in another order."""
    again: list[str] = field(default_factory=list)
    """What was planned right after that had been done: `OF_ITS_OUTCOME` is left out."""

    def reconcile(self, key: Handle) -> bool:
        if key not in self.cluster.objects:
            return False
        first = self.plan(key)
        if self._in_another_order(key) != first:
            self.by_order.append(f"{key[1]} at {self.cluster.now:%H:%M}")
        changed = super().reconcile(key)
        if changed and key in self.cluster.objects and not any(map(_asks_for_another_pass, first.actions)):
            left = [action_text(one) for one in self.plan(key).actions if self._would_change(one)]
            self.again += [one for one in left if not any(why in one for why in OF_ITS_OUTCOME)]
        return changed

    def _in_another_order(self, key: Handle) -> Plan:
        dice = random.Random(len(self.told))

        def mixed(found: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(dice.sample(found, len(found)))

        if key[0] == "BenchmarkRun":
            of_run = self.run_snapshot(key[1])
            return run.plan(replace(of_run, jobs=mixed(of_run.jobs), objects=mixed(of_run.objects)), self.cluster.now)
        seen = self.deployment_snapshot(key[1])
        children = {kind: mixed(seen.children[kind]) for kind in mixed(list(seen.children))}
        return deployment.plan(replace(seen, children=children, imported=mixed(seen.imported)), self.cluster.now)

    def _would_change(self, action: Action) -> bool:
        if not isinstance(action, Apply):
            return True
        current = self.cluster.objects.get(handle_of(action.manifest))
        return current is None or needs_apply(current, stamped(deepcopy(dict(action.manifest))))


def _asks_for_another_pass(action: Action) -> bool:
    """What is deleted is gone later; a round counts in the pass after the one that records it."""
    return isinstance(action, Delete) or (isinstance(action, Apply) and action.manifest["kind"] == "BenchmarkRound")
