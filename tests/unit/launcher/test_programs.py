"""Whether what runs is what a plan was made for: the same, another build of it, or another program."""

from pathlib import Path

import msgspec
import pytest

from numaplan.launcher.enforce.plan_fit import REBUILT, part_of_process, runs_other_script, what_differs
from numaplan.mapper import Plan, PlanApp
from numaplan.profiler import ElfFacts
from tests.unit.launcher.test_plan_table import HEAP, plan_of


def facts(build_id: str) -> ElfFacts:
    return ElfFacts(bits=64, interpreter="", build_id=build_id, go=False)


def plan(executable: str, argv: str, build_id: str = "aa") -> Plan:
    return msgspec.structs.replace(
        plan_of(), app=PlanApp(argv=(argv,), build_id=build_id, threads=2, executable=executable)
    )


@pytest.mark.parametrize(
    ("made_for", "runs", "said"),
    [
        (plan("app", "./app"), {"/bin/app": facts("aa")}, ""),
        (plan("app", "./app"), {"/bin/app": facts("bb")}, f"{REBUILT} (app)"),
        (plan("app", "./app"), {"/bin/app": facts("")}, f"{REBUILT} (app)"),
        (plan("app", "./app"), {"/bin/ls": facts("bb")}, "another program (app, not ls)"),
        # Recorded and launched by mpirun, which is not what the build id is of.
        (plan("app", "mpirun"), {"/usr/bin/mpirun": facts("bb"), "/bin/app": facts("aa")}, ""),
        (plan("app", "mpirun"), {"/usr/bin/mpirun": facts("bb")}, "another program (app, not mpirun)"),
        (plan("app", "mpirun"), {"/bin/app": facts("bb")}, f"{REBUILT} (app)"),
        # A script, whose interpreter is what has a build id.
        (plan("python3.11", "./run.py"), {"./run.py": None, "/usr/bin/python3.11": facts("aa")}, ""),
        (
            plan("python3.11", "./run.py"),
            {"./run.py": None, "/usr/bin/python3.11": facts("bb")},
            f"{REBUILT} (python3.11)",
        ),
        # Plans from before they knew the name of the executable.
        (plan("", "./app"), {"/bin/app": facts("bb")}, f"{REBUILT} (app)"),
        (plan("", "./app"), {"/bin/ls": facts("bb")}, "another program (app, not ls)"),
        # Nothing is known.
        (plan("app", "./app", ""), {"/bin/ls": facts("bb")}, ""),
        (plan("app", "./app"), {"./run.sh": None}, ""),
    ],
)
def test_what_differs(made_for: Plan, runs: dict[str, ElfFacts | None], said: str) -> None:
    found = what_differs(made_for, runs)
    assert said in found and bool(said) == bool(found)


@pytest.mark.parametrize(
    ("executable", "recorded", "started", "other"),
    [
        ("python3", "python3 a.py", "python3 b.py", "b.py"),
        ("python3.11", "/usr/bin/python3.11 a.py 8", "python3 -B -W ignore tools/b.py 8", "b.py"),
        ("", "python3 a.py", "python3 b.py", "b.py"),
        ("python3", "python3 -m a", "python3 -m b", "b"),
        ("java", "java -Xmx2g -jar a.jar", "java -jar b.jar", "b.jar"),
        ("dash", "sh a.sh", "bash b.sh", "b.sh"),
        ("python3.11", "./a.py", "./b.py", "b.py"),
        # The same one, elsewhere or with other options.
        ("python3", "python3 a.py", "/usr/bin/python3.11 -OO tools/a.py 16", ""),
        ("python3", "python3 a.py", "./a.py", ""),
        ("python3", "python3 -m a", "python3 -Bm a x", ""),
        ("java", "java -jar a.jar", "java -Xmx4g -jar /opt/a.jar", ""),
        # No script, or none of the interpreter that the plan is for.
        ("python3", "python3 a.py", "python3 -c pass", ""),
        ("python3", "python3 -c pass", "python3 b.py", ""),
        ("python3", "python3 a.py", "python3", ""),
        ("python3", "sh a.sh", "sh b.sh", ""),
        ("python3", "python3 a.py", "./b.sh", ""),
        ("python3", "python3 a.py", "env A=1 python3 b.py", ""),
        ("app", "sh a.sh", "sh b.sh", ""),
        ("app", "./app a.py", "./app b.py", ""),
    ],
)
def test_scripts_of_one_interpreter(executable: str, recorded: str, started: str, other: str) -> None:
    app = PlanApp(argv=tuple(recorded.split()), build_id="aa", threads=2, executable=executable)
    found = runs_other_script(msgspec.structs.replace(plan_of(), app=app), started.split())
    said = f"the plan was made for another script (a{other[1:]}, not {other})" if other else ""
    assert found == said


def test_a_link_to_a_script_is_that_script(tmp_path: Path) -> None:
    (tmp_path / "b.py").symlink_to("a.py")
    made_for = msgspec.structs.replace(plan_of(), app=PlanApp(argv=("python3", "a.py"), threads=2))
    assert not runs_other_script(made_for, ["python3", str(tmp_path / "b.py")])


def test_a_link_has_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "orterun").write_bytes(b"")
    (tmp_path / "mpirun").symlink_to("orterun")
    found = what_differs(plan("orterun", "mpirun"), {str(tmp_path / "mpirun"): facts("bb")})
    assert found.startswith(REBUILT)


def test_shares_of_a_rank_are_of_its_own_accesses() -> None:
    whole = plan_of((HEAP, "bind"))
    ranks = [msgspec.structs.replace(thread, process=f"r{i}") for i, thread in enumerate(whole.threads)]
    key = msgspec.structs.replace(HEAP, process="r1")
    region = msgspec.structs.replace(whole.memory[0], region=key, share=0.25)
    job = msgspec.structs.replace(whole, threads=tuple(ranks), memory=(region,))
    (mine,) = part_of_process(job, "r1").memory
    assert mine.share == 0.5
