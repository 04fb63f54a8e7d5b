"""How many accelerators a server has for itself."""

import pytest

from paceline.core import Accelerator


@pytest.mark.parametrize(
    ("product", "resource", "own"),
    [
        ("NVIDIA-H200", "nvidia.com/gpu", 4),
        ("NVIDIA-H200-SHARED", "nvidia.com/gpu", 0),  # time-slicing and MPS, as the device plugin labels the node
        ("NVIDIA-H200", "nvidia.com/gpu.shared", 0),  # with renameByDefault
    ],
)
def test_shared_ones_are_none_of_its_own(product: str, resource: str, own: int) -> None:
    assert Accelerator(product=product, count=4, resource_name=resource).own == own
