"""The programs: from the distribution, or written here (sources/), each of a kind that users have."""

from .program import Program

_PYTHON = "/usr/bin/python3"  # the distribution's, which has its numpy and scikit-learn
_CARGO = (
    "cargo build --release --offline --quiet --manifest-path sort/Cargo.toml --target-dir sort"
    " --config 'source.crates-io.replace-with=\"debian\"'"
    " --config 'source.debian.directory=\"/usr/share/cargo/registry\"'"
)
_CRATE = (
    'mkdir -p sort && printf \'[package]\\nname = "sort"\\nversion = "0.1.0"\\nedition = "2021"\\n'
    '[[bin]]\\nname = "sort"\\npath = "{sources}/sort.rs"\\n[dependencies]\\nrayon = "1"\\n\''
    " > sort/Cargo.toml"
)
_MEASURED = "test -s text || seq 2500000 | sed 's/$/ numaplan/' > text"  # 40 MB
_RANDOM = "BEGIN {{ x = 3 }} {{ x = x * 16807 % 2147483647; print x, NR % 97 }}"
_NUMBERS = f"test -s numbers || seq 350000 | awk '{_RANDOM}' > numbers"
_OPENMP = {"OMP_NUM_THREADS": "{threads}"}


def _openmp(name: str, kind: str, *, homes: bool = False, threads: int = 16) -> Program:
    return Program(
        name=f"openmp-{name}",
        kind=kind,
        argv=f"{{build}}/{name}",
        needs=("gcc",),
        packages="gcc",
        build=(f"gcc -O2 -fopenmp {{sources}}/{name}.c -o {name}",),
        environment=_OPENMP,
        threads=threads,
        homes=homes,
    )


PROGRAMS = (
    _openmp("static", "static", homes=True),
    _openmp("dynamic", "dynamic"),
    _openmp("tasks", "tasks"),
    _openmp("lookup", "table"),
    _openmp("stream", "static", homes=True, threads=8),
    _openmp("updates", "table", threads=8),
    Program(
        name="shards",
        kind="server",
        argv="{build}/shards",
        needs=("g++",),
        packages="g++",
        build=("g++ -O2 -std=c++17 -pthread {sources}/shards.cpp -o shards",),
        homes=True,
    ),
    Program(
        name="numpy",
        kind="pool",
        argv=f"{_PYTHON} {{sources}}/arrays.py {{threads}}",
        needs=(_PYTHON, "/usr/lib/python3/dist-packages/numpy"),
        packages="python3-numpy",
        environment={"OPENBLAS_NUM_THREADS": "1"},
    ),
    Program(
        name="scikit-learn",
        kind="static",
        argv=f"{_PYTHON} {{sources}}/clusters.py",
        needs=(_PYTHON, "/usr/lib/python3/dist-packages/sklearn"),
        packages="python3-sklearn",
        environment={**_OPENMP, "OPENBLAS_NUM_THREADS": "1"},
        homes=True,
    ),
    Program(
        name="java",
        kind="pool",
        # -Xbatch: threads wait for the compiler, which takes seconds in the guest. Until then all of them
        # would write the same counters.
        argv="java -Xmx400m -Xbatch -XX:+UseParallelGC -XX:ParallelGCThreads={threads}"
        " -Djava.util.concurrent.ForkJoinPool.common.parallelism={threads} -cp {build} Streams",
        needs=("java", "javac"),
        packages="default-jdk-headless",
        build=("javac -d . {sources}/Streams.java",),
    ),
    Program(
        name="go",
        kind="pool",
        argv="{build}/goroutines {threads}",
        needs=("go",),
        packages="golang-go",
        build=("GOCACHE=$PWD/go-cache GO111MODULE=off go build -o goroutines {sources}/goroutines.go",),
        environment={"GOMAXPROCS": "{threads}"},
    ),
    Program(
        name="rayon",
        kind="pool",
        argv="{build}/sort/release/sort",
        needs=("rustc", "cargo", "/usr/share/cargo/registry/rayon-1*"),
        packages="rustc cargo librust-rayon-dev",
        build=(_CRATE, _CARGO),
        environment={"RAYON_NUM_THREADS": "{threads}"},
    ),
    Program(
        name="x264",
        kind="pipeline",
        argv="ffmpeg -v error -f lavfi -i testsrc2=size=1280x720:rate=25 -frames:v 8 -c:v libx264"
        " -preset veryfast -threads {threads} -f null -",
        needs=("ffmpeg",),
        packages="ffmpeg",
        checked="",
    ),
    Program(
        name="redis",
        kind="server",
        argv="sh {sources}/redis.sh {port}",
        needs=("redis-server", "redis-benchmark"),
        packages="redis-server",
    ),
    Program(
        name="postgresql",
        kind="server",
        argv="sh {sources}/postgres.sh {postgres} {cluster} {port}",
        needs=("initdb", "pgbench", "setpriv"),
        packages="postgresql",
        build=("sh {sources}/postgres.sh {postgres} {cluster} {port} make",),
        backend="lab",  # under QEMU's user mode it ends at once
    ),
    Program(
        name="lammps",
        kind="mpi",
        argv="mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 lmp -in {sources}/melt.lmp"
        " -log none -screen none",
        needs=("lmp", "mpirun"),
        packages="lammps openmpi-bin",
        environment={"OMP_NUM_THREADS": "1"},
        threads=4,
        checked="",
        homes=True,
        multiprocess=True,
    ),
    Program(
        name="pigz",
        kind="pool",
        argv="pigz -k -c -2 -p {threads} {build}/text",
        needs=("pigz",),
        packages="pigz",
        build=(_MEASURED,),
        checked="",
    ),
    Program(
        name="zstd",
        kind="pool",
        argv="zstd -q -f -1 -T{threads} {build}/text -o /dev/null",
        needs=("zstd",),
        packages="zstd",
        build=(_MEASURED,),
        checked="",
    ),
    Program(
        name="xz",
        kind="pool",
        argv="xz -k -c -1 -T{threads} --block-size=1MiB {build}/lines",
        needs=("xz",),
        packages="xz-utils",
        build=("test -s lines || seq 900000 | sed 's/$/ numaplan/' > lines",),  # 14 MB
        checked="",
    ),
    Program(
        name="sort",
        kind="static",
        argv="sort --parallel={threads} -S 200M -n -o /dev/null {build}/numbers",
        needs=("sort",),
        packages="coreutils",
        build=(_NUMBERS,),
        environment={"LC_ALL": "C"},
        checked="",
    ),
    Program(
        name="stockfish",
        kind="pools",
        argv="stockfish bench 64 {threads} 4 default depth",
        needs=("stockfish",),
        packages="stockfish",
        checked="Nodes/second",
    ),
    Program(
        name="povray",
        kind="tiles",
        argv="povray +W240 +H180 +WT{threads} -D +I{sources}/scene.pov -F",
        needs=("povray",),
        packages="povray",
        checked="POV-Ray finished",
    ),
)
