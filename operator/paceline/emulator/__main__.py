"""`python -m paceline.emulator …SGLang flags…`"""

import sys

from paceline.emulator import main

sys.exit(main(sys.argv[1:]))
