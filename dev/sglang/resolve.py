"""resolve.py DIR: the real SGLang's own answer to DIR/asked.json; needs its Python, no GPU.

Each argv goes through SGLang's parser, its resolution and its last checks, in a process of its own, as on a GPU of the
product asked for; then the resolved arguments are held to what Paceline expects of them. Exit 1 if one is refused or
is not as expected.
"""

import contextlib
import io
import json
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

import sgl_kernel
import sglang.srt.runtime_context as context
import sglang.srt.utils.common as common
from sglang.srt.server_args import prepare_server_args

MIB = {"NVIDIA-H200": 143771, "NVIDIA-H100-80GB-HBM3": 81559}
HOPPER = {
    "is_cuda": True, "is_sm90": True, "is_hopper_with_cuda_12_3": True, "has_flashinfer": True,
    "device_capability": (9, 0), "device_sm": 90,
}  # fmt: skip
HERE = re.compile(r"(/models/|/paceline/files/)")
KEYS = {"$(PACELINE_API_KEY)": "an-api-key", "$(PACELINE_ADMIN_KEY)": "an-admin-key"}


def pretend(product: str) -> None:
    """A GPU is there. Whatever is not said of it is false."""
    others = {name: False for name in context._PLATFORM_PROBES if name not in HOPPER}
    context._PLATFORM._install(**others, **HOPPER)
    common.is_cuda = lambda: True
    common.get_device = lambda *_, **__: "cuda"
    common.get_nvgpu_memory_capacity = lambda: MIB[product]
    sgl_kernel.__getattr__ = lambda _: None  # kernels that are only imported


def resolved(root: Path, one: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(one["env"])
    pretend(one["product"])
    for path, text in one["files"].items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (root / path.lstrip("/")).write_text(text)
    command = [KEYS.get(word, HERE.sub(rf"{root}\1", word, count=1)) for word in one["argv"]]
    arguments = prepare_server_args(command[command.index("sglang.launch_server") + 1 :])
    arguments.resolve_once()
    arguments.check_server_args()
    return dict(arguments.resolved_dict())


def differences(root: Path, one: dict[str, Any]) -> list[str]:
    said = resolved(root, one)
    unlike = [
        f"{key} is {said.get(key)}, not {value}" for key, value in one["expected"].items() if said.get(key) != value
    ]
    return unlike + [f"{key} is unsaid" for key in one["compared"] if key not in said]


def answer(root: Path, one: dict[str, Any]) -> str:
    """In a fork: resolution may be done once a process."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        log = io.StringIO()
        try:
            with contextlib.redirect_stderr(log):
                text = "; ".join(differences(root, one))
        except BaseException as error:
            text = f"{type(error).__name__}: {error} {log.getvalue()[-300:]}"
            if os.environ.get("VERBOSE"):
                text += traceback.format_exc()
        os.write(write, text.encode()[:60000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def main(root: Path) -> int:
    asked = json.loads((root / "asked.json").read_text())
    wrong = 0
    for one in asked:
        said = answer(root, one)
        wrong += bool(said)
        print(f"{one['name']}: {said or 'as expected'}", flush=True)
    print(f"{len(asked)} commands, {len(asked) - wrong} accepted and resolved as expected, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
