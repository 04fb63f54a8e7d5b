"""NetworkPolicies as Paceline renders them, kept by an enforcing agent on real packets: SIG Network's reference
implementation, beside the cluster (tests/api/policed.py). test_network.py keeps them by rules of its own, in it."""

import json
import subprocess
import sys
from pathlib import Path

from tests.api.policed import PORTS
from tests.support.apiserver import BINARIES, BUILD

AGENT = "kube-network-policies"
NOBODY_CARES = {("stranger", "hub"), ("hub", "stranger"), ("server", "stranger"), ("server", "hub")}
"""Ways between pods that no policy is about."""


def expected(who: str, whom: str, port: int) -> str:
    """What docs/security.md says: a round reaches names alone and nobody it, a server is reached at its port."""
    opened = {
        "round": port == 53 and whom != "server",
        "server": whom != "round",
    }.get(who, (who, whom) in NOBODY_CARES or (whom == "server" and port == 30000))
    return "reached" if opened else "kept out"


def test_an_enforcing_agent_keeps_who_has_no_business_from_rounds_and_servers(tmp_path: Path) -> None:
    subprocess.run([BUILD, AGENT], check=True, stdout=subprocess.DEVNULL)
    program = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.api.policed", tmp_path, BINARIES / AGENT]
    done = subprocess.run(program, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    ways = [tuple(way.split()) for way in found["before"]]
    assert len(ways) == 4 * 3 * len(PORTS)
    assert set(found["before"].values()) == {"reached"}
    assert found["under"] == {" ".join(way): expected(way[0], way[1], int(way[2])) for way in ways}
