"""Compile the native parts: shared libraries, loaded by ctypes, LD_PRELOAD or QEMU; name the commands."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

from distutils.command.build_scripts import build_scripts  # isort: skip  (setuptools' own, once that is imported)

# What a library calls of its own is not the program's, whatever this Python links with otherwise.
LINK = ["-Wl,-Bsymbolic-functions"]
CFLAGS = ["-std=c11", "-O2", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]

# library -> (source folders, or single files, extra compiler flags, libraries)
NATIVE: dict[str, tuple[list[str], list[str], list[str]]] = {
    "numaplan.common.native.signals": (["common/native/signals"], [], ["pthread"]),
    "numaplan.common.native.start": (["common/native/start"], [], []),
    "numaplan.profiler.native.emulate": (
        [
            "profiler/native/qemu",
            "profiler/native/page_uses",
            "profiler/native/transfers",
            "profiler/native/call_tree",
            "machine/native/caches",
            "profiler/native/emulate",
        ],
        ["-O3", "-fvisibility=hidden"],
        [],
    ),
    "numaplan.profiler.native.perfdata": (
        ["profiler/native/call_tree", "profiler/native/perfdata"],
        ["-O3"],
        [],
    ),
    "numaplan.profiler.native.preload": (
        ["profiler/native/preload", "profiler/native/recorder"],
        [],
        ["dl", "pthread"],
    ),
    "numaplan.analyzer.native.communication": (["analyzer/native/communication"], ["-O3"], ["m"]),
    "numaplan.mapper.native.solver": (["mapper/native/solver"], ["-O3"], ["m"]),
    "numaplan.mapper.native.online": (["mapper/native/online"], ["-O3"], []),
    "numaplan.launcher.native.enforce": (
        [
            "profiler/native/preload",
            "launcher/native/plan_table",
            "launcher/native/next_touch",
            "launcher/native/enforce",
        ],
        [],
        ["dl", "pthread"],
    ),
    "numaplan.launcher.native.trace": (
        [
            "profiler/native/preload/processes.c",
            "profiler/native/preload/status.c",
            "launcher/native/plan_table",
            "launcher/native/told_cpus",
            "launcher/native/trace",
        ],
        [],
        [],
    ),
    "numaplan.lab.native.plugin": (
        [
            "profiler/native/qemu",
            "profiler/native/page_uses",
            "profiler/native/transfers",
            "machine/native/caches",
            "lab/native/plugin",
        ],
        ["-O3", "-fvisibility=hidden"],
        [],
    ),
    "numaplan.lab.native.guest": (["launcher/native/told_cpus", "lab/native/guest"], [], []),
    "numaplan.lab.native.cluster": (["lab/native/cluster"], [], []),
}
COMMANDS = ("nlab", "nlaunch", "nmap", "nprof", "numaplan")
PROGRAMS = {"cluster", "guest", "start", "trace"}  # executables; all others are shared libraries


class SharedLibrary(build_ext):
    """Build `a.b.c` as a/b/c.so (a/b/c.elf for programs), without Python's headers, suffix or init symbol."""

    def get_ext_filename(self, fullname: str) -> str:
        # Asked with the whole name, and by the build in place with its last part alone.
        return fullname.replace(".", "/") + (".elf" if last_part(fullname) in PROGRAMS else ".so")

    def build_extension(self, ext: Extension) -> None:
        link = self.compiler.link_shared_object
        if last_part(ext.name) in PROGRAMS:
            self.compiler.link_shared_object = self._link_program
        try:
            super().build_extension(ext)
        finally:
            self.compiler.link_shared_object = link

    def _link_program(self, objects: list[str], output: str, **options: object) -> None:
        libraries = options.get("libraries")
        self.compiler.link_executable(objects, output, libraries=libraries, target_lang="c")

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return ext.export_symbols


class AnyPython(bdist_wheel):
    """The native parts are the machine's, but use nothing of Python's: one wheel for all of its versions."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class Commands(build_scripts):
    """Each command is the same program, which goes by its own name."""

    def get_source_files(self) -> list[str]:
        return []

    def copy_scripts(self) -> tuple[list[str], list[str]]:
        self.run_command("build_ext")
        start = self.get_finalized_command("build_ext").get_ext_fullpath("numaplan.common.native.start")
        self.mkpath(self.build_dir)
        made = [str(Path(self.build_dir, name)) for name in COMMANDS]
        for path in made:
            self.copy_file(start, path)
        self._change_modes(made)
        return made, made


def last_part(name: str) -> str:
    return name.rpartition(".")[2]


def files(places: list[str], pattern: str) -> list[str]:
    folders = [place for place in places if not place.endswith(".c")]
    single = [place for place in places if place.endswith(pattern[1:])]
    return sorted(single + [str(path) for folder in folders for path in Path(folder).glob(pattern)])


def folders_of(places: list[str]) -> list[str]:
    return [str(Path(place).parent) if place.endswith(".c") else place for place in places]


def library(name: str) -> Extension:
    places, flags, libraries = NATIVE[name]
    return Extension(
        name,
        sources=files(places, "*.c"),
        depends=files(folders_of(places), "*.h"),
        include_dirs=folders_of(places),
        extra_compile_args=CFLAGS + flags,
        extra_link_args=[] if last_part(name) in PROGRAMS else LINK,
        libraries=libraries,
    )


setup(
    ext_modules=[library(name) for name in NATIVE if files(NATIVE[name][0][-1:], "*.c")],
    cmdclass={"build_ext": SharedLibrary, "bdist_wheel": AnyPython, "build_scripts": Commands},
    scripts=list(COMMANDS),
)
