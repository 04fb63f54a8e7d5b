"""A small local server that speaks the Hugging Face hub's protocol, for the demo and the tests.

It serves generated repositories: the configuration files carry the true facts of the models they are named after,
the weights are a few megabytes of noise; one is a dataset, of prompts written for it. `application(repositories)` is
the aiohttp application, `generated()` the repositories of the demo. Imports nothing else of ours.
"""

from paceline_emulator.hub.models import generated
from paceline_emulator.hub.repository import File, Repository, Snapshot, snapshot
from paceline_emulator.hub.server import application

__all__ = ["File", "Repository", "Snapshot", "application", "generated", "snapshot"]
