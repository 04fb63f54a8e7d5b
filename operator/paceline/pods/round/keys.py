"""The keys of the server that is measured, from our own environment: they go into requests and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.engines.keys import ADMIN_KEY, API_KEY

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


NO_KEYS = Keys()


def read(environ: Mapping[str, str]) -> Keys:
    return Keys(api=environ.get(API_KEY, ""), admin=environ.get(ADMIN_KEY, ""))
