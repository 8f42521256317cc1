"""What ranks reported, summed up: counted right, legible for thousands, and clear of what lies beside."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from numaplan.mapper.commands.main import main


def report(rank: int, host: str, **more: Any) -> dict[str, Any]:
    """As nlaunch writes it: two threads, and 1 KiB of which some are misplaced."""
    place = {"rank": rank, "host": host, "planned": more.pop("planned", host), "remapped": False}
    place |= {"ranks": more.pop("ranks", 4), "planned_ranks": 4, "job": more.pop("job", "7")}
    second = more.pop("second", [1])
    threads = [
        {"path": "0", "planned": [0], "applied": [0], "process": f"r{rank}", "tid": 5},
        {"path": "0.1", "planned": [1], "applied": second, "process": f"r{rank}", "tid": 6},
    ]
    misplaced = more.pop("misplaced", 0)
    memory = {"region": {}, "planned": {"0": 1024}, "actual": {"0": 1024}, "misplaced": misplaced}
    found = {
        "schema": "numaplan/applied/1",
        "ok": True,
        "exit_code": 0,
        "threads": threads,
        "memory": [memory],
    }
    return {**found, "unplanned_count": 1, "reasons": [], "rank": place, **more}


def saved(folder: Path, *reports: dict[str, Any]) -> Path:
    for content in reports:
        (folder / f"r{content['rank']['rank']}.json").write_text(json.dumps(content))
    return folder


def shown(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> str:
    assert main(["show", str(folder), *more]) == 0
    return capsys.readouterr().out


def test_a_job_that_went_as_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, *(report(rank, f"n{rank % 2}") for rank in range(4)))
    assert shown(capsys, tmp_path).splitlines() == [
        "4 of 4 ranks on their hosts, 8 of 8 threads on their cpus, 100 % of 4 KiB on their nodes",
        "4 threads are not in the plan (MPI's own, often)",
        "",
        "host  ranks  threads  memory",
        "n0    2/2    4/4      100 % of 2 KiB on their nodes",
        "n1    2/2    4/4      100 % of 2 KiB on their nodes",
    ]
    told = json.loads(shown(capsys, tmp_path, "--json"))
    assert told["schema"] == "numaplan/job-report/1" and told["ok"] is True
    assert (told["ranks"], told["total"]["threads_as_planned"], told["odd"]) == (4, 8, [])


def test_the_odd_ones_stand_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(
        tmp_path,
        report(
            0, "n0", second=[0, 1], reasons=["thread 0.1 is not on cpus 1: the program set its own affinity"]
        ),
        report(1, "n1", planned="n0"),
        report(2, "n1", planned="", exit_code=3),
        report(4, "n2", misplaced=512),
    )
    said = shown(capsys, tmp_path)
    assert "2 of 5 ranks on their hosts, 7 of 8 threads on their cpus, 87.5 % of" in said
    assert "no report of 1 of 5 ranks: 3\n" in said
    assert said.partition("not as planned:\n")[2].splitlines() == [
        "  rank 0 on n0: 1 of 2 threads not on their cpus (r0/0.1);"
        " thread 0.1 is not on cpus 1: the program set its own affinity",
        "  rank 1 on n1: planned on n0",
        "  rank 2 on n1: not in the plan; exit code 3",
        "  rank 4 on n2: 50.0% of its memory on other nodes",
    ]
    told = json.loads(shown(capsys, tmp_path, "--json"))
    assert not told["ok"] and told["silent"] == [3] and [one["rank"] for one in told["odd"]] == [0, 1, 2, 4]


def test_a_thousand_ranks_fit_on_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = {rank: {"planned": "n99"} for rank in range(100, 200)}
    saved(
        tmp_path, *(report(r, f"n{r // 16}", ranks=1000, **odd.get(r, {})) for r in range(0, 1000) if r % 250)
    )
    lines = shown(capsys, tmp_path).splitlines()
    assert len(lines) < 50 and max(map(len, lines)) < 120
    assert lines[0].startswith("896 of 1,000 ranks")
    assert "no report of 4 of 1,000 ranks: 0,250,500,750" in lines
    assert "… and 47 more hosts, all as planned" in lines
    assert lines[-1] == "  … and 80 more ranks (--json has all)"
    assert lines[5].startswith("n6 ")  # the first that is not as planned


def test_what_lies_beside_is_told_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, *(report(rank, "n0") for rank in range(6)))
    for rank in range(6):
        os.utime(tmp_path / f"r{rank}.json", (1, 1))
    saved(tmp_path, *(report(rank, "n0", job="8") for rank in range(4)))
    (tmp_path / "cut.json").write_text('{"schema": "numaplan/applied/1", "thr')
    (tmp_path / "plan.json").write_text("{}")
    said = shown(capsys, tmp_path)
    assert (
        said.startswith("4 of 4 ranks")
        and "left out, as not of this run: cut.json, plan.json, r4.json" in said
    )


def test_a_folder_without_reports_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path)]) == 2
    assert "no reports — give the folder of 'nlaunch --job" in capsys.readouterr().err
