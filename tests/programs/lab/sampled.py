"""Runs commands in the guest under its memory sampler and writes what it gave, as perf would write it.

sampled.py OUTPUT PERIOD TIMES COMMAND [-- COMMAND]…

The commands run side by side, TIMES times; samples are taken as often as can be meanwhile. TIMES 0: once, and
samples are taken only at the end.
"""

import os
import socket
import struct
import subprocess
import sys
from itertools import groupby
from pathlib import Path


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            sys.exit("the sampler ended")
        data += piece
    return data


def ask(connection: socket.socket, what: int, how: int = 0) -> bytes:
    connection.sendall(struct.pack("<2I", what, how))
    return receive(connection, struct.unpack("<I", receive(connection, 4))[0])


def ended(program: "subprocess.Popen[bytes]", how: int = os.WNOHANG) -> bool:
    """Whether it has; it is left unreaped, as nobody could tell any more whose its samples were."""
    return os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT | how) is not None


def main() -> None:
    output, period, times, *words = sys.argv[1:]
    commands = [list(command) for ends, command in groupby(words, "--".__eq__) if not ends]
    codes = []
    with socket.socket(socket.AF_UNIX) as connection, socket.socket(socket.AF_UNIX) as second:
        connection.connect("/dev/numaplan-lab")
        data = ask(connection, 1, int(period))
        second.connect("/dev/numaplan-lab")
        if second.recv(1):  # it is one's at a time
            sys.exit("two were admitted")
        for _ in range(int(times) or 1):
            programs = [subprocess.Popen(command) for command in commands]
            while int(times) and not all(ended(program) for program in programs):
                data += ask(connection, 2)
            for program in programs:
                ended(program, 0)
            data += ask(connection, 2)
            codes += [program.wait() for program in programs]
        Path(output).write_bytes(data)
        sys.exit(max(codes))


if __name__ == "__main__":
    main()
