"""What a BenchmarkRun of the real SGLang says, whoever has measured it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    run: Mapping[str, Any]

    @property
    def rounds(self) -> Sequence[Mapping[str, Any]]:
        rounds: Sequence[Mapping[str, Any]] = self.run["rounds"]
        return rounds

    def points(self, arm: str) -> list[Mapping[str, Any]]:
        return [point for one in self.rounds for point in one["points"] if point["arm"] == arm]

    def parity(self, arm: str) -> list[Mapping[str, Any]]:
        """What became of this arm's answers, server by server."""
        return [each["parity"] for one in self.rounds for each in one["replicates"] if each["arm"] == arm]

    def resolved(self, arm: str) -> list[Mapping[str, str]]:
        """What each server of this arm said of its own arguments."""
        return [each["resolved"] for one in self.rounds for each in one["replicates"] if each["arm"] == arm]

    def result(self, arm: str) -> Mapping[str, str]:
        """What the rounds say of this arm on the only workload."""
        results: Sequence[Mapping[str, str]] = self.run["status"]["results"]
        (result,) = [each for each in results if each["arm"] == arm and each["workload"] != "mean"]
        return result
