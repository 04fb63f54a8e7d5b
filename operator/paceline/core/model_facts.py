"""What a model's own files show of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """From config.json, the safetensors headers and the files' sizes, as far as rules ask for it: they travel in a
    message of 4 KiB. None, or empty, where these do not say."""

    architectures: tuple[str, ...] = ()
    hidden_size: int | None = None
    target_hidden_size: int | None = None
    """The target's hidden size that a draft head was made for, if that is not its own."""
    num_hidden_layers: int | None = None
    attention_layers: tuple[int, ...] = ()
    """Layers that attend to single tokens, for models in which the others keep a running state."""
    state_bytes: int | None = None
    """Bytes that those other layers together keep for one sequence."""
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    cache_elements: int | None = None
    """Numbers that the KV cache of all layers keeps for one token."""
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
    """The target's layers whose output a head reads, as its `eagle_config` or `dflash_config` names them."""
    aux_layers_beside: tuple[int, ...] = ()
    """The same, named at the top of config.json, where not every engine looks."""
    num_aux_hidden_states: int | None = None
    """How many layers' output it reads, where config.json has the number itself."""
    block_size: int | None = None
    markov_rank: int | None = None
    num_target_layers: int | None = None
    """Layers of the target that a DFLASH or DSPARK head was trained for; such heads also have the two fields above."""
    nextn_layers: int | None = None
    """Own layers that predict further tokens, as config.json announces them."""
    has_nextn: bool | None = None
    """Whether its files have such layers."""
    custom_code: bool = False
    """The repository brings Python files, or its configuration asks for some."""
    lacks: tuple[str, ...] = ()
    """Weights that a head's class needs and that none of its files has."""
    has_d2t: bool | None = None
    """Whether a head maps its draft tokens to the target's (tensor d2t)."""
    weight_sizes: Mapping[str, int] = field(default_factory=dict)
    """Columns of fc and eh_proj, rows of lm_head, embed_tokens and d2t, where the files have them unpacked."""
    quantized_weights: bool | None = None
    """Whether the files have scales, or packed weights."""
    speculators: str | None = None
    """Type of a model in the speculators format, such as eagle3."""
    verifier: str | None = None
    """Repository of the target that such a model was made for."""
    weight_bytes: int | None = None
