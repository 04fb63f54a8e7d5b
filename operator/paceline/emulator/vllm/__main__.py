"""`python -m paceline.emulator.vllm serve MODEL …vLLM options…`"""

import sys

from paceline.emulator.vllm import main

sys.exit(main(sys.argv[1:]))
