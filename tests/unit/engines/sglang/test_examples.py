"""What the examples start is read by the flags of the version that their images speak."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import example_files

from paceline import api
from paceline.core import DeploymentSpec, by_server, server_of
from paceline.engines import ENGINES
from paceline.plan.deployment.models import artifacts_of, pin
from paceline_emulator import flags

FILES = (*example_files.DEPLOYMENTS, Path(__file__).with_name("shapes.yaml"))


def served() -> Iterator[tuple[str, DeploymentSpec]]:
    """Every deployment of SGLang, at some commit."""
    for file in FILES:
        spec = api.deployment(example_files.ours(file))
        if spec.server.engine.type == "SGLang":
            yield file.stem, pin(spec, {(one.source, one.revision): "0" * 40 for one in artifacts_of(spec)})


DEPLOYMENTS = dict(served())


def test_versions_old_and_new_are_among_them() -> None:
    assert {spec.server.engine.version for spec in DEPLOYMENTS.values()} >= {"0.5.6", "0.5.23"}


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_argv_is_accepted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By argparse with the flags of that version, and it finds in it what was meant."""
    spec, adapter = DEPLOYMENTS[name], ENGINES["SGLang"]
    for pool in spec.pools:
        for server, arms in by_server(spec.server, pool.arms):
            assert adapter.refusals(server, arms) == ()
        for arm in pool.arms:
            server = server_of(spec.server, arm)
            argv = [word.replace("$(LWS_WORKER_INDEX)", "0") for word in adapter.argv(server, arm)]
            try:
                parsed = flags.parse(argv[argv.index("sglang.launch_server") + 1 :], server.engine.version)
            except SystemExit:
                pytest.fail(f"{pool.name} {arm.name}: {capsys.readouterr().err.splitlines()[-1]}")
            assert parsed["served_model_name"] == spec.server.served_name
            assert (parsed["speculative_algorithm"] is None) == (arm.draft is None)


def test_a_flag_that_the_version_lacks_would_be_found(capsys: pytest.CaptureFixture[str]) -> None:
    spec = DEPLOYMENTS["shapes"]
    old = replace(spec.server, engine=replace(spec.server.engine, version="0.5.6"))
    argv = ENGINES["SGLang"].argv(old, spec.pools[0].arms[0])
    with pytest.raises(SystemExit):
        flags.parse(argv[3:], "0.5.6")
    assert "unrecognized arguments: --admin-api-key" in capsys.readouterr().err
