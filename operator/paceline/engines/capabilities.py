"""What an engine can do: one row an engine, from which the rules of the API are rendered in CEL.

What depends on an engine's version or on its other arguments stands in the engine's own rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

TPU = "google.com/tpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """A field at its default is what most engines have."""

    algorithms: tuple[str, ...]
    """Algorithms that it serves, of `core.ALGORITHMS`."""
    repository: str = ""
    """OWNER/NAME of the image that its makers publish, whose tags are its releases; "" if there is none."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Its own names of algorithms that the API has another word for, in capitals → that word."""
    trees: bool = False
    """Drafts may branch (`tree.topK` above 1)."""
    fewest_steps: int = 1
    """Least depth of a tree or chain."""
    ngram_breadth: bool = False
    """NGRAM may keep several continuations."""
    adaptive: tuple[str, ...] = ()
    """Algorithms whose depth it can choose while it serves."""
    adaptive_steps: str = ""
    """What `adaptive.numSteps` means to it, with its default; for the reference."""
    schedule: tuple[str, ...] = ()
    """Algorithms whose depth it can take by batch size."""
    custom_args: str = ""
    """Flags that it takes as `custom.args`; for the reference."""
    resource: str | None = None
    """The only extended resource that it runs on; None: any that is not in `not_on`."""
    not_on: tuple[str, ...] = ()
    """Extended resources that it does not run on."""
    needs_topology: bool = False
    """`accelerator.topology` must be set."""
    several_nodes: bool = False
    """Processes of one server find each other by rank and address (`engines.nodes`)."""
    admin_key: bool = False
    """It has a key of its own for administration."""
    speculators: tuple[str, ...] = ()
    """Types of heads in the speculators format that it reads."""
    underscores: bool = False
    """To its parser `--a_b` is `--a-b`."""
