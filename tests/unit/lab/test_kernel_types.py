"""Where a kernel keeps what is watched: read from what it says of its own types."""

import subprocess
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError
from numaplan.lab.guest.kernel_types import waiting_since

SOURCE = """
typedef unsigned long long u64;
enum state { RUNS, WAITS };
struct other { int a; u64 last_queued; };
struct sched_info { unsigned long pcount; u64 run_delay, last_arrival, last_queued; };
struct task_struct {
    unsigned flags : 3;
    enum state state;
    int (*call)(struct task_struct *, const char *);
    union { u64 one; double other[5]; } either;
    struct other other;
    struct sched_info sched_info;
    volatile unsigned last : 1;
} task;
const struct other *const used[3];
int probe(struct task_struct *t) { return t->call(t, "x"); }
const unsigned long offset = __builtin_offsetof(struct task_struct, sched_info.last_queued);
"""


def compiled(folder: Path, source: str, *flags: str) -> Path:
    (folder / "types.c").write_text(source)
    target = folder / "types.o"
    subprocess.run(["gcc", *flags, "-c", folder / "types.c", "-o", target], check=True, timeout=60)
    return target


def test_the_member_is_found_by_its_name(tmp_path: Path) -> None:
    assert waiting_since(compiled(tmp_path, SOURCE, "-gbtf")) == 8 + 8 + 40 + 16 + 24


@pytest.mark.parametrize(
    ("source", "flags"), [(SOURCE, ()), ("struct task_struct { int x; } task;", ("-gbtf",))]
)
def test_a_kernel_that_does_not_tell(tmp_path: Path, source: str, flags: tuple[str, ...]) -> None:
    with pytest.raises(MachineLacksError, match="where a task waits"):
        waiting_since(compiled(tmp_path, source, *flags))


def test_damaged_images(tmp_path: Path) -> None:
    whole = compiled(tmp_path, SOURCE, "-gbtf").read_bytes()
    start = whole.index(b"\x9f\xeb\x01")
    image = tmp_path / "damaged"
    for at in range(start, start + 600, 7):
        image.write_bytes(whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4 :])
        try:
            assert 0 <= waiting_since(image) < 1 << 32
        except MachineLacksError:
            continue
    for size in (0, 10, 100, start + 30):
        image.write_bytes(whole[:size])
        with pytest.raises(MachineLacksError):
            waiting_since(image)
