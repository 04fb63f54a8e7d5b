"""The port that a run's servers listen at, one after another."""

import socket
from contextlib import closing

from paceline.measure.ports import any_free, reserved


def test_two_runs_at_once_have_two_ports_though_nothing_listens_yet() -> None:
    """Else one of them would measure the other's server."""
    wanted = any_free()
    with reserved(wanted) as first, reserved(wanted) as second:
        assert wanted <= first < second
    with reserved(wanted) as again:
        assert again == first


def test_where_something_listens_is_not_taken() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        taken = other.getsockname()[1]
        with reserved(taken) as port:
            assert port > taken
