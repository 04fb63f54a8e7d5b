"""`python -m paceline_emulator.hub`"""

import sys

from paceline_emulator.hub.command import main

sys.exit(main())
