"""The store that an address names."""

from .places import LocalPlace, Place, is_remote
from .store import PlanStore


def open_store(address: str, signers: str = "", sign_with: str = "") -> PlanStore:
    """The store at an address, which need not hold anything yet; raises UsageError, MachineLacksError.

    signers: file of those whose plans are taken from elsewhere; sign_with: the key that signs what is put
    there.
    """
    return PlanStore(_place(address, signers, sign_with))


def _place(address: str, signers: str, sign_with: str) -> Place:
    if not is_remote(address):
        return LocalPlace(address)
    from .remote import RemotePlace
    from .signatures import Signatures

    return RemotePlace(address, Signatures(signers, sign_with))
