"""The measured server's secrets, from the client's environment: its keys, which are only sent in requests, and secrets
of its own environment, which are only hidden in its output."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from paceline.core.manifest import Scalar
from paceline.core.masking import without, without_secrets
from paceline.core.text import T, in_all_texts, printable
from paceline.engines.keys import ADMIN_KEY, API_KEY, HIDE
from paceline.evidence import Replicate, RoundResult

_SHORTEST = 6
"""Minimum characters of a server's variable that is hidden: "1" or "true" would be hidden in every number and word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Each is "" if the server has none."""

    api: str = field(default="", repr=False)
    admin: str = field(default="", repr=False)
    others: tuple[str, ...] = field(default=(), repr=False)
    """Values from Secrets in the server's environment."""

    @property
    def administration(self) -> str:
        """The key for flushing the cache: the admin key if the server has one."""
        return self.admin or self.api

    def hidden_in(self, text: str) -> str:
        """The text with "***" for each secret: a server may print its arguments and its environment."""
        return without(text, (self.api, self.admin, *self.others))

    def hidden_anyway(self, text: str) -> str:
        """`hidden_in`, and without what looks like a secret."""
        return without_secrets(self.hidden_in(text))

    def fit_to_show(self, text: str) -> str:
        """A text that a server may have influenced, safe for messages: one line, no secrets or control characters."""
        return self.hidden_anyway(printable(self.hidden_in(text)))

    def masked(self, result: RoundResult, known: Collection[Scalar] = ()) -> RoundResult:
        """The result with all texts that a server may have influenced made safe. A resolved argument equal to one of
        the values `known` from the spec stays: it is no secret, and is compared."""
        shown = self.shown
        return replace(
            result,
            replicates=tuple(self.masked_replicate(each, known) for each in result.replicates),
            gpus=shown(result.gpus),
            gpu_model=shown(result.gpu_model),
            driver=shown(result.driver),
            engine_version=shown(result.engine_version),
            notes=shown(result.notes),
        )

    def shown(self, value: T) -> T:
        """The value with all of its texts made safe."""
        return in_all_texts(value, self.fit_to_show)

    def masked_replicate(self, replicate: Replicate, known: Collection[Scalar]) -> Replicate:
        shown = self.shown
        plain = {
            key: printable(value)
            for key, value in replicate.resolved.items()
            if isinstance(value, str) and value in known
        }
        return replace(
            replicate,
            error=shown(replicate.error),
            version=shown(replicate.version),
            resolved={**shown(replicate.resolved), **plain},
            differs=shown(replicate.differs),
            outputs=shown(replicate.outputs),
        )


NO_KEYS = Keys()


def read_keys(environ: Mapping[str, str]) -> Keys:
    others = (value for name, value in environ.items() if name.startswith(HIDE) and len(value) >= _SHORTEST)
    return Keys(api=environ.get(API_KEY, ""), admin=environ.get(ADMIN_KEY, ""), others=tuple(others))
