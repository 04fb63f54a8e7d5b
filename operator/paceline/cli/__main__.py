"""`python -m paceline.cli`: the image's entry point."""

import sys

from paceline.cli import main

sys.exit(main())
