"""The client of a round: starts one arm after another through the wrapper, and measures each.

Read `steps` first: the protocol, without I/O. `runner` does the I/O with `control` (the wrapper in the server's
container), `server` (HTTP) and `load` (the requests, sent by `client` as a process); `report` turns their outcomes into
points.
"""
