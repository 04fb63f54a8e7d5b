"""kernels.py FOLDER: builds, without a GPU, the kernels that SGLang 0.5.17 compiles with nvcc at its first requests.

kernels.json lists the calls of SGLang's load_jit as they were traced. SGLang finds a kernel by its sources, the target
(9.0a) and tvm-ffi's version, not by its path, so `pack --kernels FOLDER` brings them along. Six seconds a kernel, with:
* an environment of machine.txt, on its PATH, and in it, by `pip install --no-deps`, nvidia-cuda-nvcc, nvidia-nvvm and
  nvidia-cuda-crt 13.0.88 and nvidia-cuda-cccl 13.0.85; CUDA_HOME is its nvidia/cu13, with links lib64 -> lib and
  lib/libcudart.so -> libcudart.so.13; g++
* PYTHONPATH: an unpacked `site` of the kit; SGLANG_IS_FLASHINFER_AVAILABLE=false
* LD_LIBRARY_PATH: a libcuda.so.1, where there is no driver one of empty functions, named as `nm -D --undefined-only`
  finds them in the site's libraries: cu, then a capital letter
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
