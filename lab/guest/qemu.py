"""QEMU's version and command line for a guest, and starting it so that it never outlives this process."""

import ctypes
import mmap
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.machine import Machine, cache_arguments, seat_arguments
from numaplan.profiler import x86_cpu

from ..places import QEMU
from .cable import Cable
from .shape import GuestShape, machine_option, shape_arguments

# Each was measured to make the boot shorter or the guest's clock steadier: see docs/results/lab.md.
KERNEL_OPTIONS = (
    "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off no_timer_check lpj=4000000 nowatchdog "
    "tsc=reliable cryptomgr.notests random.trust_cpu=on audit=0 apparmor=0 selinux=0 nokaslr"
)
CODE_MIB = 1024  # of translated code at most: with that full, QEMU 7.2 may crash (docs/reference/lab.md)
_RING_BYTES = 1 << 17  # of samples a cpu, at least: thousands; the guest takes them out four times a second
_READ_TICKS = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
_TICKS_SECONDS = 0.02
_TICKS_TRIES = 20  # of which the one that was interrupted least counts
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def command_line(
    shape: GuestShape,
    kernel: Path,
    initrd: Path,
    directory: Path,
    ports: Sequence[tuple[str, int]],
    plugin: Path | None,
    caches: Sequence[str] = (),
    *,
    version: tuple[int, int] | None,
    cable: Cable | None = None,
) -> list[str]:
    """The whole command: `ports` are (name, file descriptor) in the order of the agent's port numbers from 1.

    plugin: the counting plugin, whose memory sampler is a device of the guest; None boots the same guest
    uncounted (for measuring what counting costs). The sampler's memory is the file `samples` in `directory`.
    caches: what `caches_of` says; none: they are not modelled. version: QEMU's, which decides what the cpus
    can do. cable: to other guests.
    """
    command = [QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"]
    command += ["-accel", f"tcg,thread=multi,tb-size={CODE_MIB}", "-machine", machine_option(shape), "-cpu"]
    command += [f"{x86_cpu(version)},la57=off"]  # page tables of five levels would mean longer walks
    command += ["-bios", "qboot.rom", "-kernel", str(kernel), "-initrd", str(initrd)]
    command += ["-append", " ".join([kernel_options(), *(cable.kernel_options() if cable else ())])]
    command += shape_arguments(shape)
    command += ["-fsdev", "local,id=root,path=/,security_model=none,multidevs=remap"]
    command += ["-device", "virtio-9p-pci,fsdev=root,mount_tag=root"]
    command += ["-chardev", f"file,id=console,path={escaped(directory / 'console')}"]
    command += ["-serial", "chardev:console", "-device", "virtio-serial-pci"]
    for number, (name, descriptor) in enumerate(ports, start=1):
        command += ["-chardev", f"socket,id={name},fd={descriptor}"]
        command += ["-device", f"virtserialport,chardev={name},name={name},nr={number}"]
    if cable is not None:
        command += cable.devices()
    if plugin is not None:
        samples = directory / "samples"
        size = sampler_bytes(len(shape.machine.cpus))
        files = [f"file={escaped(plugin)}", f"directory={escaped(directory)}", f"samples={escaped(samples)}"]
        memory = f"memory-backend-file,id=samples,share=on,mem-path={escaped(samples)},size={size}"
        command += [
            "-plugin",
            ",".join([*files, *caches]),
            "-object",
            memory,
            "-device",
            "ivshmem-plain,memdev=samples",
        ]
    return command


def caches_of(machine: Machine) -> list[str]:
    """What the plugin is told of the caches to model."""
    return seat_arguments(machine) + cache_arguments(machine)


def kernel_options() -> str:
    """The kernel's command line."""
    khz = host_tick_khz()
    return f"{KERNEL_OPTIONS} tsc_early_khz={khz}" if khz else KERNEL_OPTIONS


def sampler_bytes(cpus: int) -> int:
    """Size of the memory sampler's device, a power of two as PCI wants it."""
    return 1 << (_RING_BYTES * cpus).bit_length()


def escaped(path: Path) -> str:
    """A path as the value of one of QEMU's comma-separated options."""
    return str(path).replace(",", ",,")


def spawn(
    command: Sequence[str], descriptors: Sequence[int], errors: int, more: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start QEMU away from the terminal (Ctrl-C is ours to handle), to be killed by the kernel if we die.

    errors: descriptor that takes what QEMU says; more: of its environment.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
        pass_fds=tuple(descriptors),
        env={**os.environ, **more},
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def host_tick_khz() -> int | None:
    """Ticks a millisecond of this processor's time-stamp counter; None where this is no x86-64, or generated
    code may not run.

    It is the guest's, too (QEMU hands it through). The guest's kernel would measure it at boot against an
    emulated timer, which on a crowded host errs by several times: its seconds are then no seconds.
    """
    if platform.machine() != "x86_64":
        return None
    with suppress(OSError, ValueError), mmap.mmap(-1, mmap.PAGESIZE) as data:
        data.write(_READ_TICKS)
        return _rate(data)
    return None


def _rate(code: mmap.mmap) -> int:
    place = ctypes.c_char.from_buffer(code)
    address = ctypes.addressof(place)
    executable = mmap.PROT_READ | mmap.PROT_EXEC
    failed = _libc.mprotect(
        ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_int(executable)
    )
    del place  # the page can be closed only when nobody refers to it
    if failed:
        raise OSError(ctypes.get_errno(), "generated code may not run")
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    ticks, then = _both(read)
    time.sleep(_TICKS_SECONDS)
    more_ticks, now = _both(read)
    return round((more_ticks - ticks) / (now - then) * 1e6)


def _both(read: Callable[[], int]) -> tuple[int, float]:
    """The counter, and ns of CLOCK_MONOTONIC at the same moment."""
    found = []
    for _ in range(_TICKS_TRIES):
        before = time.monotonic_ns()
        ticks = int(read())
        after = time.monotonic_ns()
        found.append((after - before, ticks, (before + after) / 2))
    _, ticks, moment = min(found)
    return ticks, moment
