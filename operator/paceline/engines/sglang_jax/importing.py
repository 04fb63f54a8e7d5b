"""How sglang-jax is started, and which arguments enable speculation."""

from paceline.engines.importing import Importing
from paceline.engines.sglang_jax.capabilities import CAPABILITIES
from paceline.engines.sglang_jax.rules import flag_list
from paceline.engines.speculative_flags import Speculative

IMPORTING = Importing(
    modules=("sgl_jax.launch_server",),
    repositories=("sglang-jax",),
    flags=flag_list,
    speculating=Speculative(aliases=CAPABILITIES.aliases, ngram=lambda _: {}, layers=False).speculating,
)
