"""How SGLang is started, and which arguments enable speculation."""

from paceline.engines.importing import Importing
from paceline.engines.sglang.arguments import flag_list
from paceline.engines.sglang.capabilities import CAPABILITIES
from paceline.engines.sglang.flags_by_release import ngram
from paceline.engines.speculative_flags import Speculative

IMPORTING = Importing(
    modules=("sglang.launch_server",),
    programs=(("sglang", "serve"),),
    title="sglang",
    repositories=("sglang",),
    flags=flag_list,
    other_hub="SGLANG_USE_MODELSCOPE",
    speculating=Speculative(
        aliases=CAPABILITIES.aliases,
        ngram=ngram,
        layers=True,  # 0.5.23, speculative_hook.py:1120
    ).speculating,
)
