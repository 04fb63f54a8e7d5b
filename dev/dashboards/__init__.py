"""The dashboards of the chart, as code: `model` says what a board is, `grafana` writes it, one module a board."""

from pathlib import Path

from dev.dashboards import deployment, fleet, health, runs
from dev.dashboards.grafana import as_json

DIRECTORY = Path(__file__).parents[2] / "charts" / "paceline" / "files" / "dashboards"
BOARDS = (fleet.BOARD, deployment.BOARD, runs.BOARD, health.BOARD)


def written() -> dict[Path, str]:
    """File → what belongs into it."""
    return {DIRECTORY / f"{board.uid}.json": as_json(board) for board in BOARDS}
