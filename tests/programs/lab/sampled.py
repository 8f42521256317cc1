"""Runs commands in the guest under its memory sampler and writes what it gave, as perf would write it.

sampled.py OUTPUT PERIOD SECONDS COMMAND [-- COMMAND]…   (SECONDS between two takes; 0: only at the end)
"""

import socket
import struct
import subprocess
import sys
import time
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


def main() -> None:
    output, period, seconds, *words = sys.argv[1:]
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    with socket.socket(socket.AF_UNIX) as connection, socket.socket(socket.AF_UNIX) as second:
        connection.connect("/dev/numaplan-lab")
        data = ask(connection, 1, int(period))
        second.connect("/dev/numaplan-lab")
        if second.recv(1):  # it is one's at a time
            sys.exit("two were admitted")
        programs = [subprocess.Popen(command) for command in commands]
        while float(seconds) and any(program.poll() is None for program in programs):
            time.sleep(float(seconds))
            data += ask(connection, 2)
        codes = [program.wait() for program in programs]
        Path(output).write_bytes(data + ask(connection, 2))
        sys.exit(max(codes))


if __name__ == "__main__":
    main()
