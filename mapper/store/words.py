"""The shape of a command line: numbers and paths blanked, so that runs of one kind have one shape."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence

import msgspec

from .program_files import identity_of

NUMBER, PATH, LONG = "#", "PATH", "…"
MOST_WORDS = 256  # of a command line; what comes later does not count
_MOST_FILES = 64  # words that are looked for on the disk
_MOST_SEARCHED = 16  # and by PATH
_LONGEST = 1024  # characters of a word
_VALUE = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?([kKmMgGtT]i?[bB]?|[bB]|%|ms|us|ns|s|h)?"
_NUMBERS = re.compile(rf"{_VALUE}([x,:;/@-]{_VALUE})*")
_SHORT = re.compile(rf"(-[A-Za-z])({_VALUE})")
_FILE_NAME = re.compile(r"[\w.+@-]*\w\.[A-Za-z]\w{0,5}")
# Options whose number says how many threads there will be: runs with another number are of another class.
_TEAM = re.compile(r"--?([\w-]*(thread|worker|job|core|cpu|rank|proc)[\w-]*|nt|t|T|j)")
# What comes before the program that these start says how many ranks there will be.
_LAUNCHER = re.compile(r"(mpi(run|exec)|orterun|prun|prterun|srun|aprun|jsrun)([.\w]*)")
_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|node|Rscript|R|lua|luajit|julia|php|bash|dash|ash|zsh|ksh|sh|tclsh|octave|awk|gawk)"
    r"[\d.]*"
)
_CODE = ("-c", "-e", "-E", "-m")  # what follows is the program of an interpreter


class ReadWord(msgspec.Struct, frozen=True):
    """A word's shape; program: what names the build of the program that it is, file: where that lies; code:
    whether it is a program itself.
    """

    shape: str
    program: str = ""
    file: str = ""
    code: bool = False


def read_words(argv: Sequence[str]) -> list[ReadWord]:
    """A command line word by word, the program's own name first."""
    return list(_Reader().words(argv))


def shape_of(words: Sequence[ReadWord]) -> str:
    """The shape of all; several names of files in a row count as one."""
    shapes = [word.shape for word in words]
    return " ".join(
        shape for place, shape in enumerate(shapes) if shape != PATH or not place or shapes[place - 1] != PATH
    )


class _Reader:
    """What was read of the words before decides what a word is."""

    def __init__(self) -> None:
        self._files, self._searched = _MOST_FILES, _MOST_SEARCHED
        self._awaits_script = False
        self._interprets = self._launches = False

    def words(self, argv: Sequence[str]) -> Iterator[ReadWord]:
        """Each word of a command line."""
        before = ""
        for number, word in enumerate(argv[:MOST_WORDS]):
            if number == 0:
                name = os.path.basename(word)  # noqa: PTH119
                self._note_interpreter(name)
                self._launches = _LAUNCHER.fullmatch(name) is not None
                yield ReadWord(name[:_LONGEST])
            else:
                yield self._read(word, before)
            before = word

    def _read(self, word: str, before: str) -> ReadWord:
        if len(word) > _LONGEST:
            return ReadWord(LONG)
        if self._interprets and before in _CODE:
            self._awaits_script = False
            return ReadWord(word, code=True)
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if option and not equals:
            short = _SHORT.fullmatch(word)
            return ReadWord(f"{short[1]}{NUMBER}" if short and not _TEAM.fullmatch(short[1]) else word)
        of_team = self._launches or _TEAM.fullmatch(option or before) is not None
        if _NUMBERS.fullmatch(value):
            return ReadWord(word if of_team else f"{option}{equals}{NUMBER}")
        file = self._file(value)
        if program := self._program(file):
            self._launches = False
            return ReadWord(f"{option}{equals}{os.path.basename(value)}", program, file)  # noqa: PTH119
        path = "/" in value or bool(file) or _FILE_NAME.fullmatch(value)
        return ReadWord(f"{option}{equals}{PATH}" if path and " " not in value else word)

    def _file(self, value: str) -> str:
        """The file that a value names, here or by PATH; empty when it names none."""
        if not value or "\0" in value or self._files <= 0:
            return ""
        self._files -= 1
        if os.path.exists(value):  # noqa: PTH110
            return value
        if "/" in value or not value[0].isalpha() or self._searched <= 0:
            return ""
        self._searched -= 1
        return shutil.which(value) or ""

    def _program(self, file: str) -> str:
        if not file:
            return ""
        found = identity_of(file, surely_a_program=self._awaits_script)
        self._awaits_script = False
        self._note_interpreter(os.path.basename(file))  # noqa: PTH119
        return found

    def _note_interpreter(self, name: str) -> None:
        if _INTERPRETER.fullmatch(name):
            self._awaits_script = self._interprets = True
