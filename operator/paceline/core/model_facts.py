"""What a model's own files reveal."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Facts from config.json, the safetensors headers and the files' sizes, limited to what rules need: the facts
    travel in a message of 4 KiB. None, or empty, if the files do not say."""

    architectures: tuple[str, ...] = ()
    hidden_size: int | None = None
    target_hidden_size: int | None = None
    """The target's hidden size for which a draft head was made, if not its own."""
    num_hidden_layers: int | None = None
    attention_layers: tuple[int, ...] = ()
    """Layers that attend to single tokens, for models whose other layers keep a running state."""
    state_bytes: int | None = None
    """Bytes that those other layers together use for one sequence."""
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    cache_elements: int | None = None
    """Numbers that the KV cache stores per token, over all layers."""
    kv_lora_rank: int | None = None
    """Size of the latent vector, for models with latent attention (MLA)."""
    split_sizes: Mapping[str, int] = field(default_factory=dict)
    """Inner sizes of MLPs that tensor parallelism splits, by their name in config.json."""
    weight_block_size: tuple[int, ...] = ()
    """Rows and columns that share a scale, for block-quantised checkpoints."""
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    max_position_embeddings: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    aux_layers: tuple[int, ...] = ()
    """The target's layers whose output a head reads, from its `eagle_config` or `dflash_config`."""
    aux_layers_beside: tuple[int, ...] = ()
    """The same, from the top level of config.json, which not every engine reads."""
    num_aux_hidden_states: int | None = None
    """Number of layers whose output it reads, if config.json gives it directly."""
    block_size: int | None = None
    markov_rank: int | None = None
    num_target_layers: int | None = None
    """Layers of the target for which a DFLASH or DSPARK head was trained; such heads also have the two fields above."""
    nextn_layers: int | None = None
    """Own layers that predict further tokens, according to config.json."""
    has_nextn: bool | None = None
    """Whether the files contain such layers."""
    custom_code: bool = False
    """Whether the repository has Python files, or its configuration requires some."""
    lacks: tuple[str, ...] = ()
    """Weights that a head's class needs but its files lack."""
    has_d2t: bool | None = None
    """Whether a head maps its draft tokens to the target's (tensor d2t)."""
    weight_sizes: Mapping[str, int] = field(default_factory=dict)
    """Columns of fc and eh_proj, rows of lm_head, embed_tokens and d2t, if the files have them unpacked."""
    quantized_weights: bool | None = None
    """Whether the files have scales, or packed weights."""
    speculators: str | None = None
    """Type of a model in the speculators format, such as eagle3."""
    verifier: str | None = None
    """Repository of the target for which such a model was made."""
    weight_bytes: int | None = None
