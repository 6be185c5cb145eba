"""
What the scripted model of ``flowstate demo`` says, turn by turn.

The words are prepared; what they lead to is not: the real agent runs these tool calls, and the
real results decide whether the tests pass. The first draft has a mistake in it, so one run fails.
"""

from __future__ import annotations

import math

from flowstate.testing.scripted_turns import Block, Turn, Usage, text, thinking, tool_call

PROMPTS = (
    "Write slug.py with a function slugify(text) that makes a URL slug, and a test for it. "
    "Run the test.",
    "Give slugify a max_length that never cuts a word in two. Add a test and run it.",
    "Make it a command: python3 slug.py 'Some text' prints the slug.",
)
"""The demo's three requests."""

_TEST = """\
import unittest

from slug import slugify


class SlugTest(unittest.TestCase):
    def test_words_are_joined_by_hyphens(self):
        self.assertEqual(slugify("Hello World"), "hello-world")

    def test_punctuation_is_dropped(self):
        self.assertEqual(slugify("  Rock & Roll, baby! "), "rock-roll-baby")


if __name__ == "__main__":
    unittest.main()
"""

_DRAFT = '''\
"""URL slugs."""


def slugify(text):
    """The words of a text in lower case, joined by hyphens."""
    words = text.lower().split()
    return "-".join(words)
'''

_IMPORT = ('"""URL slugs."""\n', '"""URL slugs."""\n\nimport re\n')
_WORDS = ("words = text.lower().split()", 'words = re.findall(r"[a-z0-9]+", text.lower())')

_SHORTER = (
    '''\
def slugify(text):
    """The words of a text in lower case, joined by hyphens."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words)
''',
    '''\
def slugify(text, max_length=None):
    """The words of a text in lower case, joined by hyphens; whole words up to max_length."""
    slug = ""
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        longer = f"{slug}-{word}" if slug else word
        if max_length is not None and len(longer) > max_length:
            break
        slug = longer
    return slug
''',
)
_SHORTER_TEST = (
    '\n\nif __name__ == "__main__":\n',
    """
    def test_a_word_is_never_cut_in_two(self):
        self.assertEqual(slugify("one two three", max_length=9), "one-two")


if __name__ == "__main__":
""",
)
_COMMAND = (
    "        slug = longer\n    return slug\n",
    """\
        slug = longer
    return slug


if __name__ == "__main__":
    import sys

    print(slugify(" ".join(sys.argv[1:])))
""",
)

HELD_TURN = 2
"""The turn of the second request (from 1) that waits until it is released, so that the third
request is sure to come while the second runs."""


def script(third: bool) -> list[Turn]:
    """
    The turns of all requests, in order.

    Args:
        third: whether the third request is run; a refused one says nothing.
    """
    return [*_first(), *_second(), *(_third() if third else [])]


def _first() -> list[Turn]:
    return [
        _turn(
            thinking(
                "A slug is lower case, words joined by hyphens, nothing else. I'll write the test "
                "first, so that I know when I am done."
            ),
            text("I'll begin with the test."),
            _write("test_slug.py", _TEST),
        ),
        _turn(text("Now the function itself."), _write("slug.py", _DRAFT)),
        _turn(_run_tests()),
        _turn(
            text("Punctuation is still in there. I'll look for words in place of splitting."),
            _edit("slug.py", _WORDS),
            _edit("slug.py", _IMPORT),
        ),
        _turn(_run_tests()),
        _turn(text("slugify is in slug.py and its test in test_slug.py. Both cases pass.")),
    ]


def _second() -> list[Turn]:
    return [
        _turn(
            text("I'll look at what we have."),
            tool_call("Read", file_path="slug.py"),
            tool_call("Read", file_path="test_slug.py"),
        ),
        _turn(
            thinking("Adding whole words while they fit keeps the loop simple."),
            text("Words are added as long as the slug fits."),
            _edit("slug.py", _SHORTER),
            _edit("test_slug.py", _SHORTER_TEST),
            delay=math.inf,
        ),
        _turn(_run_tests()),
        _turn(text("slugify takes max_length now, and never cuts a word. All three tests pass.")),
    ]


def _third() -> list[Turn]:
    return [
        _turn(tool_call("Read", file_path="slug.py")),
        _turn(text("A few lines at the end will do."), _edit("slug.py", _COMMAND)),
        _turn(
            tool_call(
                "Bash",
                command='python3 slug.py "Rock & Roll, baby!"',
                description="Try the command",
            )
        ),
        _turn(text("python3 slug.py 'Some text' prints the slug.")),
    ]


def _turn(*blocks: Block, delay: float = 0.0) -> Turn:
    # A little time between the pieces, as of somebody who writes.
    return Turn(*blocks, delay=delay, chunk_delay=0.02, usage=Usage(input=900, output=120))


def _write(path: str, content: str) -> Block:
    return tool_call("Write", file_path=path, content=content)


def _edit(path: str, change: tuple[str, str]) -> Block:
    old, new = change
    return tool_call("Edit", file_path=path, old_string=old, new_string=new)


def _run_tests() -> Block:
    return tool_call(
        "Bash", command="python3 -m unittest -v test_slug", description="Run the tests"
    )
