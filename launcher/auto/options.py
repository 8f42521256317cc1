"""How a plan is to be found."""

from typing import Literal

import msgspec

Mode = Literal["yes", "require", "record"]
MODES: tuple[Mode, ...] = ("yes", "require", "record")


class AutoOptions(msgspec.Struct, frozen=True):
    """mode: without a plan the program runs bare (`yes`), not at all (`require`), or is recorded and planned
    (`record`); store, signers: addresses, empty: the usual ones; class_name: of the run, empty: by its
    arguments; sign_with: the key that signs what is stored elsewhere; backend: what records, empty: what
    costs little; record_seconds: how much of the run, from its start.
    """

    mode: Mode
    store: str = ""
    class_name: str = ""
    signers: str = ""
    sign_with: str = ""
    backend: str = ""
    record_seconds: float = 120.0
