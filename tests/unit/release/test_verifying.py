"""docs/release.md: which of its commands a dry run executes, and whom it trusts."""

import re
from pathlib import Path

from dev.release.dry_run import blocks

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "release.md").read_text()


def test_every_command_of_cosign_is_in_a_block_that_is_executed() -> None:
    executed = "\n".join(blocks(DOCUMENT))
    commands = re.findall(r"(?m)^    (cosign .*)$", DOCUMENT)
    assert {command.split()[1] for command in commands} == {"verify", "verify-attestation"}
    assert [command for command in commands if command not in executed.splitlines()] == []
    assert all(" $SIGNER " in command for command in commands)


def test_a_block_without_the_mark_is_not_executed() -> None:
    assert blocks("    a\n\n<!-- executed -->\n\n    b\n    c\n\ntext\n\n    d\n") == ["b\nc\n"]


def test_who_is_trusted_is_the_workflow_at_the_tag_of_the_version() -> None:
    """Exactly: at any tag, an older release under the tag of a newer one would do."""
    said = (ROOT / "dev" / "release" / "env.sh").read_text()
    issuer = "--certificate-oidc-issuer https://token.actions.githubusercontent.com"
    identity = "--certificate-identity $source/.github/workflows/release.yml@refs/tags/v$version"
    for text in (DOCUMENT, said):
        assert issuer in text
        assert identity in text.replace("$SOURCE", "$source").replace("$VERSION", "$version")
        assert "regexp" not in text
