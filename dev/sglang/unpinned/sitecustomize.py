"""On PYTHONPATH of a SGLang 0.5.23 without an accelerator that loads LoRA adapters.

Its plain torch backend pins memory of the host, always (`lora/backend/torch_backend.py:204`, `lora/layers.py:720`), for
which torch wants a driver. Here nothing is pinned: what is computed, and of what, stays the same.
"""

import importlib.abc
import importlib.util
import sys
from functools import wraps

MAKERS = ("tensor", "zeros", "empty")


class AfterTorch(importlib.abc.MetaPathFinder):
    """Changes torch once it has been imported; a process without torch pays nothing."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            unpin(module)

        spec.loader.exec_module = load_and_change
        return spec


def unpin(torch):
    torch.Tensor.pin_memory = lambda tensor, *_: tensor
    for name in MAKERS:
        setattr(torch, name, unpinned(getattr(torch, name)))


def unpinned(make):
    @wraps(make)
    def made(*args, pin_memory=False, **options):
        return make(*args, **options)

    return made


sys.meta_path.insert(0, AfterTorch())
