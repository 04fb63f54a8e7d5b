"""`python -m paceline_emulator.sglang_jax …sglang-jax flags…`"""

import sys

from paceline_emulator.sglang_jax import main

sys.exit(main())
