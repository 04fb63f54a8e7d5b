"""A real API server takes what `paceline import` prints, and the servers that are rendered of it."""

import pytest
import yaml
from tests.support.apiserver import Running
from tests.support.migration import CASES, Case

from paceline.cli import main
from paceline.cli.render import rendered

STRICT = ("--dry-run=server", "--validate=strict", "-f", "-")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_taken(apiserver: Running, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(case.file), *case.options]) == 0
    manifest = yaml.safe_load(capsys.readouterr().out)
    manifest["metadata"]["namespace"] = "default"
    assert apiserver.kubectl("apply", *STRICT, given=manifest).stdout.endswith(" created (server dry run)\n")
    for one in rendered(manifest, arm=manifest["spec"]["pools"][0]["candidates"][0]["name"], pool="main"):
        one["metadata"].pop("ownerReferences")  # of a resource that was not created
        assert apiserver.kubectl("apply", *STRICT, given=one).stdout.endswith(" created (server dry run)\n")
