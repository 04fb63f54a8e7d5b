"""`python -m paceline.emulator.sglang_jax …sglang-jax flags…`"""

import sys

from paceline.emulator.sglang_jax import main

sys.exit(main(sys.argv[1:]))
