"""`python tests/oracles/sglang_client.py …`: SGLang's compiled benchmark client, without SGLang.

Its extension module is loaded by path: importing `sglang` would bring torch.
"""

import importlib.util
import sys
from pathlib import Path


def main(argv: list[str]) -> None:
    package = importlib.util.find_spec("sglang")
    assert package
    assert package.submodule_search_locations
    (path,) = Path(package.submodule_search_locations[0], "srt", "rust_extensions").glob("_bench.*.so")
    spec = importlib.util.spec_from_file_location("_bench", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.run_argv(["sglang-bench", *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
