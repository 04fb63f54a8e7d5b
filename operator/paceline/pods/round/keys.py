"""The keys of the server that is measured, from our own environment: they go into requests and nowhere else."""

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
        """What a server wants for emptying its cache: its admin key alone, if it has one."""
        return self.admin or self.api

    def hidden_in(self, text: str) -> str:
        """A server may print the arguments it was started with."""
        for key in filter(None, (self.api, self.admin)):
            text = text.replace(key, HIDDEN)
        return text

    def fit_to_show(self, text: str) -> str:
        """What a server made us say, as it may leave the round: without its keys, on one line, and without what a
        terminal would obey."""
        return printable(self.hidden_in(text))

    def told(self, result: RoundResult) -> RoundResult:
        """A result of which everything that a server has had a say in is fit to show."""
        shown = self.shown
        return replace(
            result,
            replicates=tuple(map(self._of_an_arm, result.replicates)),
            gpus=shown(result.gpus),
            gpu_model=shown(result.gpu_model),
            driver=shown(result.driver),
            engine_version=shown(result.engine_version),
            notes=shown(result.notes),
        )

    def shown(self, value: T) -> T:
        """All of its texts fit to show."""
        return in_all_texts(value, self.fit_to_show)

    def _of_an_arm(self, one: Replicate) -> Replicate:
        shown = self.shown
        return replace(
            one,
            error=shown(one.error),
            resolved=shown(one.resolved),
            differs=shown(one.differs),
            outputs=shown(one.outputs),
        )


NO_KEYS = Keys()


def read(environ: Mapping[str, str]) -> Keys:
    return Keys(api=environ.get(API_KEY, ""), admin=environ.get(ADMIN_KEY, ""))
