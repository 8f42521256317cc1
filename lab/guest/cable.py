"""What joins a guest to others: a network device whose frames go through a socket of this process."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cable:
    """A guest's end of its cable, its place among the hosts, and the names of all of them.

    Each frame is passed as its length (4 bytes, big-endian) and its bytes; the guest's kernel is told who is
    who, and the agent gives it its name and address (10.0.0.1 is the first host).
    """

    end: socket.socket
    host: int
    names: Sequence[str]

    def devices(self) -> list[str]:
        """QEMU's arguments for it."""
        card = f"virtio-net-pci,netdev=cable,mac={hardware_address(self.host).hex(':')},romfile="
        return ["-netdev", f"socket,id=cable,fd={self.end.fileno()}", "-device", card]

    def kernel_options(self) -> list[str]:
        """What the guest's kernel is told; it hands on to the agent what it does not know."""
        return [f"numaplan_hosts={','.join(self.names)}", f"numaplan_host={self.host}"]


def hardware_address(host: int) -> bytes:
    """Of a host's network device."""
    return bytes.fromhex("525400 6e6c") + bytes([host])
