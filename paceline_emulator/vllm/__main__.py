"""`python -m paceline_emulator.vllm serve MODEL …vLLM options…`"""

import sys

from paceline_emulator.vllm import main

sys.exit(main())
