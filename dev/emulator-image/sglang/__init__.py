"""Stands in for SGLang in the emulated engine image: `python3 -m sglang.launch_server …` and `sglang serve …`.

Put this directory's parent on PYTHONPATH of an image that has `paceline_emulator`, and its `bin` on PATH.
"""

__version__ = "0.5.23+emulated"
