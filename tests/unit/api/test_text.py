"""Manifests as text: what is written is read by kubectl as it was meant."""

import pytest
import yaml

from paceline.api.text import Dumper
from paceline.cli.render import Plain


@pytest.mark.parametrize("dumper", [Dumper, Plain])
@pytest.mark.parametrize("digest", ["1e234567", "08912345", "12345678", "1e5", "0.5", ".5e3"])
def test_a_digest_that_kubectl_would_read_as_a_number_is_quoted(dumper: type[yaml.Dumper], digest: str) -> None:
    """One digest in sixty: the API server refused such a round, because its restSHA256 was an integer."""
    assert yaml.dump({"restSHA256": digest}, Dumper=dumper) == f"restSHA256: '{digest}'\n"


@pytest.mark.parametrize("digest", ["1a234567", "e1234567", "1e2e4567"])
def test_other_digests_are_not(digest: str) -> None:
    assert yaml.dump({"restSHA256": digest}, Dumper=Dumper) == f"restSHA256: {digest}\n"
