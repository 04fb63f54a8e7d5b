"""docs/release.md, as far as it says what is."""

import pytest

from paceline.api.crd import crds


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_v1alpha1_is_the_only_version_served_and_stored(crd: dict) -> None:
    assert [(one["name"], one["served"], one["storage"]) for one in crd["spec"]["versions"]] == [
        ("v1alpha1", True, True)
    ]
    assert "conversion" not in crd["spec"]
    assert "deprecated" not in crd["spec"]["versions"][0]
