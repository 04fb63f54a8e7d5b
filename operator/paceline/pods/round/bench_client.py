"""`python -m paceline.pods.round.bench_client …`: SGLang's benchmark client, compiled, without SGLang.

Only the extension module of the pinned sglang wheel is loaded, by path: importing `sglang` would bring torch. It is a
process by itself: the heartbeat goes on during a load, and a client that hangs can be killed.
"""

import importlib.util
import os
import sys
from pathlib import Path

HOME = "PACELINE_BENCH_CLIENT"
"""A directory with `sglang/srt/rust_extensions/`; without it the installed wheel is used."""


def extension() -> Path:
    """The compiled client. Raises FileNotFoundError."""
    package = importlib.util.find_spec("sglang") if HOME not in os.environ else None
    installed = package.submodule_search_locations if package else None
    roots = [Path(os.environ[HOME]) / "sglang"] if HOME in os.environ else [Path(root) for root in installed or ()]
    for root in roots:
        for module in sorted((root / "srt" / "rust_extensions").glob("_bench.*.so")):
            return module
    raise FileNotFoundError("SGLang's benchmark client is not installed (requirements-bench.lock)")


def main(argv: list[str]) -> None:
    path = extension()
    spec = importlib.util.spec_from_file_location("_bench", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not an extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.run_argv(["sglang-bench", *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
