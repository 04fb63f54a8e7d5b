"""`python -m paceline_emulator …SGLang flags…`"""

import sys

from paceline_emulator import main

sys.exit(main())
