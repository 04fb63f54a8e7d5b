"""What the scripts of a release ask: `python3 -m dev.release`, with nothing but the standard library.

version                  what this tree is
check TAG                may this tree be released as TAG?
notes VERSION            its section of CHANGELOG.md, or what is unreleased
prepare VERSION          writes the version everywhere, and the day into CHANGELOG.md
platforms                standard input: an image index; output: platform and digest of each image
chart DIRECTORY …        the chart as it is published
"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from dev.release import changelog, packaging, versions


def check(tag: str) -> int:
    wrong = versions.faults(tag)
    try:
        changelog.section(tag.removeprefix("v"), changelog.CHANGELOG.read_text())
    except ValueError as error:
        wrong.append(str(error))
    print(*wrong or [f"{tag}: every file says this version, and so does CHANGELOG.md"], sep="\n")
    return bool(wrong)


def prepare(version: str) -> int:
    if not versions.VERSION.fullmatch(version):
        print(f"{version} is no version such as 0.2.0 or 0.2.0-rc.1", file=sys.stderr)
        return 2
    today = datetime.now(UTC).date()
    changelog.CHANGELOG.write_text(changelog.released(version, today, changelog.CHANGELOG.read_text()))
    for place in versions.PLACES:
        place.say(version)
    return check(f"v{version}")


def platforms() -> int:
    """Attestations that a builder puts into an index are of no platform."""
    for one in json.load(sys.stdin)["manifests"]:
        platform = one["platform"]
        if platform["os"] != "unknown":
            print(f"{platform['os']}/{platform['architecture']} {one['digest']}")
    return 0


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.release")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version")
    commands.add_parser("platforms")
    for name, argument in (("check", "tag"), ("notes", "version"), ("prepare", "version")):
        commands.add_parser(name).add_argument(argument)
    chart = commands.add_parser("chart")
    chart.add_argument("directory", type=Path)
    for option in ("--image", "--digest", "--platforms", "--source"):
        chart.add_argument(option, required=True)
    given = parser.parse_args(argv)
    match given.command:
        case "version":
            print(versions.current())
        case "check":
            return check(given.tag)
        case "notes":
            print(changelog.notes(given.version, changelog.CHANGELOG.read_text()))
        case "prepare":
            return prepare(given.version)
        case "platforms":
            return platforms()
        case "chart":
            packaging.write(
                given.directory,
                packaging.Published(
                    image=given.image, digest=given.digest, platforms=given.platforms.split(), source=given.source
                ),
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
