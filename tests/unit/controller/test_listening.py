"""Where the operator is heard: a cluster may have IPv4 alone, or IPv6 alone."""

import socket
import urllib.request

from prometheus_client import start_http_server

from paceline.controller.shell import EVERYWHERE

HOSTS = ("127.0.0.1", "[::1]") if socket.has_dualstack_ipv6() else ("127.0.0.1",)


def test_metrics_are_told_on_both_kinds_of_address() -> None:
    server, thread = start_http_server(0, addr=EVERYWHERE)
    try:
        for host in HOSTS:
            with urllib.request.urlopen(f"http://{host}:{server.server_port}/metrics", timeout=5) as answer:
                assert answer.status == 200
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
