"""`python3 -m sglang.launch_server …`"""

import sys

from paceline_emulator import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
