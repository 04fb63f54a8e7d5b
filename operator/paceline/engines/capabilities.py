"""The capabilities of each engine, from which the API's CEL rules are rendered.

Conditions on an engine's version or its other arguments are in the engine's own rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

TPU = "google.com/tpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Defaults describe most engines."""

    algorithms: tuple[str, ...]
    """Algorithms that it serves, of `core.ALGORITHMS`."""
    repository: str = ""
    """OWNER/NAME of the official image, whose tags are its releases; "" if there is none."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The engine's name of an algorithm, in capitals → the API's name."""
    trees: bool = False
    """Drafts may branch (`tree.topK` above 1)."""
    fewest_steps: int = 1
    """Minimum depth of a tree or chain."""
    ngram_breadth: bool = False
    """NGRAM may keep several continuations."""
    adaptive: tuple[str, ...] = ()
    """Algorithms whose depth it can choose while serving."""
    adaptive_steps: str = ""
    """The meaning and default of `adaptive.numSteps`; for the reference."""
    schedule: tuple[str, ...] = ()
    """Algorithms whose depth can depend on the batch size."""
    custom_args: str = ""
    """Flags that `custom.args` may contain; for the reference."""
    resource: str | None = None
    """The only extended resource on which it runs; None: any except `not_on`."""
    not_on: tuple[str, ...] = ()
    """Extended resources on which it does not run."""
    needs_topology: bool = False
    """`accelerator.topology` must be set."""
    several_nodes: bool = False
    """Processes of one server find each other by rank and address (`engines.nodes`)."""
    admin_key: bool = False
    """Whether it has a separate key for administration."""
    speculators: tuple[str, ...] = ()
    """Head types in the speculators format that it reads."""
    underscores: bool = False
    """Whether its parser reads `--a_b` as `--a-b`."""
