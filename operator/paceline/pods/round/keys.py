"""The keys of the measured server, from the client's environment. They are only sent in requests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from paceline.core.text import T, in_all_texts, printable
from paceline.engines.keys import ADMIN_KEY, API_KEY
from paceline.evidence import Replicate, RoundResult

HIDDEN = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """ "" where the server has none."""

    api: str = field(default="", repr=False)
    admin: str = field(default="", repr=False)

    @property
    def administration(self) -> str:
        """The key for flushing the cache: the admin key if the server has one."""
        return self.admin or self.api

    def hidden_in(self, text: str) -> str:
        """The text with "***" for each key: a server may print its arguments."""
        for key in filter(None, (self.api, self.admin)):
            text = text.replace(key, HIDDEN)
        return text

    def fit_to_show(self, text: str) -> str:
        """A text that a server may have influenced, safe for messages: without keys and control characters, on one
        line."""
        return printable(self.hidden_in(text))

    def masked(self, result: RoundResult) -> RoundResult:
        """The result with every text that a server may have influenced fit to show."""
        shown = self.shown
        return replace(
            result,
            replicates=tuple(map(self._masked_replicate, result.replicates)),
            gpus=shown(result.gpus),
            gpu_model=shown(result.gpu_model),
            driver=shown(result.driver),
            engine_version=shown(result.engine_version),
            notes=shown(result.notes),
        )

    def shown(self, value: T) -> T:
        """The value with all of its texts fit to show."""
        return in_all_texts(value, self.fit_to_show)

    def _masked_replicate(self, replicate: Replicate) -> Replicate:
        shown = self.shown
        return replace(
            replicate,
            error=shown(replicate.error),
            resolved=shown(replicate.resolved),
            differs=shown(replicate.differs),
            outputs=shown(replicate.outputs),
        )


NO_KEYS = Keys()


def read(environ: Mapping[str, str]) -> Keys:
    return Keys(api=environ.get(API_KEY, ""), admin=environ.get(ADMIN_KEY, ""))
