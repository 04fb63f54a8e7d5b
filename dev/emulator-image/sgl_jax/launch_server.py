"""`python3 -m sgl_jax.launch_server …`"""

import sys

from paceline_emulator.sglang_jax import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
