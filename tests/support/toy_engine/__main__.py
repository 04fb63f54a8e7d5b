"""`python -m tests.support.toy_engine MODULE ARGUMENT…`: `python -m MODULE ARGUMENT…` where the toy is registered."""

import runpy
import sys

from tests.support.toy_engine import ADAPTER, NAME

from paceline import engines

engines.ENGINES = {**engines.ENGINES, NAME: ADAPTER}
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
