"""Stand-ins for what SGLang's argument resolution imports and never needs: torch, transformers, kernels.

A stand-in is a class that is all things at once: a base class, a decorator, a module's constant. SGLang's own modules
are the real ones; one that cannot be made of stand-ins (a kernel, a model's processor) becomes a stand-in itself, and
of the resolution's own modules none may (`REAL`).
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

REAL = ("sglang.srt.server_args", "sglang.srt.environ", "sglang.srt.utils.common", "sglang.srt.arg_groups")
ABSENT = frozenset({
    "torch_npu", "torch_musa", "intel_extension_for_pytorch", "mlx", "aiter", "vllm", "cupy", "habana_frameworks",
    "pandas",
})  # fmt: skip
"""What would be taken for another accelerator, or for a package that is not needed."""


class Anything(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Anything(name, (), {})
        setattr(cls, name, made)
        return made

    def __call__(cls, *args: Any, **words: Any) -> Any:
        if cls.__mro__[1:] != (object,):
            return super().__call__(*args, **words)
        decorates = len(args) == 1 and not words and isinstance(args[0], types.FunctionType | type)
        return args[0] if decorates else cls

    def _itself(cls, *_: Any) -> Any:
        return cls

    def _no(cls, *_: Any) -> bool:
        return False

    def _nothing(cls, *_: Any) -> int:
        return 0

    __getitem__ = __or__ = __ror__ = __and__ = __neg__ = __invert__ = __enter__ = _itself
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = _itself
    __bool__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __exit__ = _no
    __len__ = __int__ = __index__ = _nothing

    def __iter__(cls) -> Any:
        return iter(())

    def __setitem__(cls, key: Any, value: Any) -> None:
        pass


class Module(types.ModuleType):
    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "9.9.9"
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Anything(name, (), {})
        setattr(self, name, made)
        return made


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: whatever nobody has."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] in ABSENT:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Module:
        return Module(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


class Lenient(importlib.abc.Loader):
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def create_module(self, spec: Any) -> Any:
        return self.inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        try:
            self.inner.exec_module(module)
        except Exception:
            if module.__name__.startswith(REAL):
                raise
            module.__class__ = Module


class Own(importlib.abc.MetaPathFinder):
    """Comes first: SGLang's own modules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] != "sglang":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.origin and spec.origin.endswith(".py") and not isinstance(spec.loader, Lenient):
            spec.loader = Lenient(spec.loader)
        return spec


def install(root: str) -> None:
    """SGLang is imported from `root` from now on."""
    sys.path.insert(0, root)
    sys.meta_path.insert(0, Own())
    sys.meta_path.append(Missing())
