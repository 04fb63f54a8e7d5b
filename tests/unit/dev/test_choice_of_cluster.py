"""CLUSTER=own or kind: which cluster the scripts of dev/cluster make, and which they then ask."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

SCRIPTS = Path(__file__).parents[3] / "dev" / "cluster"
NO_DOCKER = "unix:///nonexistent/docker.sock"


@dataclass(frozen=True, slots=True)
class Place:
    """A state directory and a cache that nobody else uses; no Docker answers."""

    tmp: Path

    @property
    def state(self) -> Path:
        return self.tmp / "state"

    def made_by(self, cluster: str) -> None:
        self.state.mkdir()
        (self.state / ".paceline-cluster").write_text(cluster)

    def run(self, *command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if name != "CLUSTER"}
        own = {
            "PACELINE_CLUSTER_NAME": "pace-unit",
            "PACELINE_STATE": str(self.state),
            "PACELINE_CACHE": str(self.tmp / "cache"),
            "DOCKER_HOST": NO_DOCKER,
        }
        return subprocess.run(command, env=inherited | own | settings, capture_output=True, text=True, timeout=30)

    def function(self, call: str, **settings: str) -> str:
        """What a function of the scripts prints."""
        sourced = f"set -euo pipefail; . {SCRIPTS}/env.sh; . {SCRIPTS}/node.sh; . {SCRIPTS}/kind.sh; {call}"
        done = self.run("bash", "-c", sourced, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_a_word_it_is_the_own_one(place: Place) -> None:
    assert place.function("cluster") == "own\n"


@pytest.mark.parametrize("made", ["own", "kind"])
@pytest.mark.parametrize("asked", ["own", "kind"])
def test_a_cluster_stays_what_it_was_made_as(place: Place, made: str, asked: str) -> None:
    place.made_by(f"{made}\n")
    assert place.function("cluster", CLUSTER=asked) == f"{made}\n"


def test_one_that_was_made_before_there_was_a_choice_is_the_own_one(place: Place) -> None:
    place.made_by("")
    assert place.function("cluster", CLUSTER="kind") == "own\n"


@pytest.mark.parametrize(
    ("made", "asked", "says"),
    [
        (None, "minikube", "CLUSTER is own or kind, not minikube"),
        (None, "kind", "Docker does not answer"),
        ("own", "kind", "was made with CLUSTER=own: end it first"),
        ("kind", "own", "was made with CLUSTER=kind: end it first"),
    ],
)
def test_up_refuses_before_it_does_anything(place: Place, made: str | None, asked: str, says: str) -> None:
    if made:
        place.made_by(made)
    refused = place.run(SCRIPTS / "up", CLUSTER=asked)
    assert (refused.returncode, says in refused.stderr) == (1, True), refused.stderr
    assert not (place.tmp / "cache" / "bin").exists()


def test_down_keeps_the_state_of_kinds_cluster_while_docker_does_not_answer(place: Place) -> None:
    place.made_by("kind")
    refused = place.run(SCRIPTS / "down")
    assert (refused.returncode, "Docker does not answer" in refused.stderr) == (1, True), refused.stderr
    assert place.state.exists()


def test_kinds_configuration_has_every_place_filled_in(place: Place) -> None:
    configuration = yaml.safe_load(place.function("kind_configuration", PACELINE_NET="10.249"))
    assert configuration["networking"] == {"podSubnet": "10.249.16.0/20", "serviceSubnet": "10.249.96.0/20"}
    volumes = str(place.state / "volumes")
    assert [node["extraMounts"] for node in configuration["nodes"]] == [
        [{"hostPath": volumes, "containerPath": volumes}],
    ] * 2
    assert "kubeadmConfigPatches" not in configuration


def test_the_image_made_here_gets_the_own_clusters_dns(place: Place) -> None:
    configuration = yaml.safe_load(place.function("kind_configuration", PACELINE_KIND_IMAGE="local"))
    (patch,) = map(yaml.safe_load, configuration["kubeadmConfigPatches"])
    assert patch == {"kind": "InitConfiguration", "skipPhases": ["preflight", "addon/coredns"]}
