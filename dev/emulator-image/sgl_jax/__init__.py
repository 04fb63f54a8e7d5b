"""Stands in for sglang-jax in the emulated engine image: `python3 -m sgl_jax.launch_server …`."""

__version__ = "0.1.0rc0+emulated"
