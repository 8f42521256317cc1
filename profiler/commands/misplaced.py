"""Options of ours among a program's arguments, where whoever typed them most likely meant us."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise


def misplaced_options(arguments: Sequence[str], forms: Mapping[str, str]) -> list[str]:
    """Notes on words that look like our options, alone or with their value in one word (-oX, --output=X).

    forms: pattern of the values that only we would take, by option.
    """
    found = []
    for word, following in pairwise([*arguments, ""]):
        option, value, shown = _divided(word)
        if not value:
            value, shown = following, f"{word} {following}"
        if option in forms and re.fullmatch(forms[option], value):
            found.append(
                f"note: {shown} comes after the program and is passed to it: nprof's options go before it"
            )
    return found


def _divided(word: str) -> tuple[str, str, str]:
    """An option, its value if it is in the same word, and that word."""
    if word.startswith("--"):
        option, _, value = word.partition("=")
        return option, value, word
    return word[:2], word[2:], word
