"""Writes charts/paceline/files/dashboards: `make dashboards`, after a change here."""

from dev.dashboards import DIRECTORY, written

DIRECTORY.mkdir(parents=True, exist_ok=True)
for old in set(DIRECTORY.glob("*.json")) - written().keys():
    old.unlink()
for file, text in written().items():
    file.write_text(text)
    print(file.relative_to(DIRECTORY.parents[3]))
