"""kernels.py FOLDER: builds, without a GPU, the kernels that SGLang 0.5.17 compiles with nvcc at its first requests.

kernels.json lists the calls of SGLang's load_jit as they were traced. SGLang finds a kernel by its sources, the target
(9.0a) and tvm-ffi's version, not by its path, so `pack --kernels FOLDER` brings them along. Needs CUDA_HOME with nvcc
13.0 (the PyPI packages nvidia-cuda-nvcc, -nvvm, -cuda-crt and -cuda-cccl 13.0 unpacked over each other, with torch's
CUDA headers), g++, ninja, and an unpacked `site` of the kit on PYTHONPATH. Half a minute a kernel.
"""

import json
import os
import sys
import time
from pathlib import Path

TUPLES = ("cuda_wrappers", "cpp_wrappers")

if __name__ == "__main__":
    os.environ["TVM_FFI_CACHE_DIR"] = str(Path(sys.argv[1]).resolve())
    from sglang.kernels.jit.utils import load_jit, override_jit_cuda_arch

    with override_jit_cuda_arch(9, 0):
        for call in json.loads(Path(__file__).with_name("kernels.json").read_text()):
            began = time.monotonic()
            options = {name: value for name, value in call.items() if name != "args" and value is not None}
            options |= {name: [tuple(one) for one in options[name]] for name in TUPLES if name in options}
            load_jit(*call["args"], **options)
            print(f"{'_'.join(call['args'])}: {time.monotonic() - began:.0f} s", flush=True)
