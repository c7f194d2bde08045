"""The examples of a guide, as they stand there."""

import pathlib
import re

GUIDES = pathlib.Path(__file__).resolve().parents[2] / "docs/guide"


class Guide:
    def __init__(self, name):
        self.text = (GUIDES / name).read_text(encoding="utf-8")

    def blocks(self, language):
        """The code blocks in a language."""
        found = re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)
        blocks = [block for name, block in found if name == language]
        assert blocks, f"no block of {language}"
        return blocks

    def lines(self, language):
        """The lines of all of them."""
        return [line for block in self.blocks(language) for line in block.splitlines() if line]

    def quoted(self, pattern):
        """What stands between backquotes, where all of it fits the pattern."""
        return [text for text in re.findall(r"`([^`\n]+)`", self.text) if re.fullmatch(pattern, text)]
