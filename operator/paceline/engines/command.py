"""Parts of a server's command that engines share."""

from collections.abc import Mapping

from paceline.core import Model, Server
from paceline.core.names import snapshot_path
from paceline.engines.arguments import UNLISTED, FlagList, flag_value


def model_path(model: Model) -> str:
    """The directory of a model's commit."""
    assert model.commit, "a server is rendered after the prefetch has pinned its commits"
    return snapshot_path(model.source, model.commit)


def running_requests(server: Server, flag: str, fewest: int, flags: FlagList = UNLISTED) -> int:
    """The user's own limit of concurrent requests; else twice the largest measured concurrency, at least `fewest`."""
    limit = flag_value(server.engine.args, flag, flags)
    return int(limit) if limit and limit.isdecimal() else max(fewest, 2 * server.max_concurrency)


def unless_given(server: Server, defaults: Mapping[str, str], flags: FlagList = UNLISTED) -> tuple[str, ...]:
    """Our defaults that the user's arguments for all arms do not set."""
    given = {parsed.name for parsed in flags.parse(server.engine.args)}
    return tuple(word for flag, value in defaults.items() if flag not in given for word in (flag, value))
