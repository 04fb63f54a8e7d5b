"""With this folder on PYTHONPATH every Python has the toy, as each process of a release with it would."""

from tests.support.toy_engine import ADAPTER, NAME

from paceline import engines

engines.ENGINES = {**engines.ENGINES, NAME: ADAPTER}
