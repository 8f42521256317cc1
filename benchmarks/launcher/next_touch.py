"""What next-touch costs a page, as ratios: marking to moving, touch to move_pages, user to kernel.

Times of an emulated machine are no times, but their ratios say what is work for the kernel; [NEXT-TOUCH],
4.2, gives them for a machine of 2009. Runs here where there are several nodes, else in the lab.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from numaplan.common import MachineLacksError
from numaplan.launcher.enforce.next_touch import include_folder
from numaplan.machine import Machine

SOURCE = Path(__file__).with_name("next_touch_cost.c")
LIBRARY = Path(include_folder()).parent / "enforce.so"
COLUMNS = ("mark", "touch_by_page", "touch_by_granule", "move_pages", "kernel_mark", "memcpy")
# [NEXT-TOUCH], 4.2, in ns: a page marked, moved on touch, moved by move_pages (2.5 us and 1 GB/s).
PAPER_MARK, PAPER_TOUCH, PAPER_MOVE, PAPER_BASE = 40.0, 5200.0, 2500.0 + 4096.0, 72000.0
PAPER = {
    "mark_of_touch": PAPER_MARK / PAPER_TOUCH,
    "touch_of_move_pages": PAPER_TOUCH / PAPER_MOVE,
    "move_pages_base_in_pages": PAPER_BASE / PAPER_MOVE,
}
LAB_SECONDS = 900


def run(most: int = 65536) -> dict[str, Any]:
    """ns a page for 1 to `most` pages, and the ratios beside the paper's, where it has them."""
    if shutil.which("cc") is None:
        raise MachineLacksError("there is no C compiler", "apt-get install gcc libc6-dev")
    here = sum(node.memory_bytes > 0 for node in Machine.load("local").nodes) > 1
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "next_touch_cost"
        flags = ["-std=gnu11", "-O2", "-D_GNU_SOURCE", f"-I{include_folder()}"]
        subprocess.run(["cc", *flags, "-o", program, SOURCE], check=True)
        command = ["env", f"LD_PRELOAD={LIBRARY}", str(program), str(most), "5" if here else "3"]
        if not here:
            lab = [str(Path(sys.executable).parent / "nlab"), "run", "--machine", "4x2"]
            command = [*lab, "--timeout", str(LAB_SECONDS), "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        raise MachineLacksError(f"next_touch_cost did not run: {last}", "nlab doctor")
    return {"where": "here" if here else "lab 4x2", **compared(done.stdout)}


def compared(text: str) -> dict[str, Any]:
    """The program's lines as ns a page, with the ratios of the largest run and of one page."""
    each = {}
    for line in text.splitlines():
        pages, *values = line.split()
        each[int(pages)] = dict(zip(COLUMNS, map(float, values), strict=True))
    one, many = each[min(each)], each[max(each)]
    measured = {
        "mark_of_touch": many["mark"] / many["touch_by_page"],
        "mark_of_granule": many["mark"] / many["touch_by_granule"],
        "touch_of_move_pages": many["touch_by_page"] / many["move_pages"],
        "move_pages_base_in_pages": one["move_pages"] / many["move_pages"],
        "granule_of_page": many["touch_by_granule"] / many["touch_by_page"],
        "kernel_of_user_mark": many["kernel_mark"] / many["mark"],
        "granule_of_memcpy": many["touch_by_granule"] / many["memcpy"],
    }
    return {"ratios": measured, "paper": PAPER, "ns_a_page": {str(pages): each[pages] for pages in each}}
