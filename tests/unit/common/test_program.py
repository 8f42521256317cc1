"""What a command line runs."""

import pytest

from numaplan.common import (
    UsageError,
    find_program,
    other_script,
    own_words,
    program_name,
    rank_words,
    script_name,
    script_path,
)


@pytest.mark.parametrize(
    ("line", "script", "name"),
    [
        ("./app -n 4 input", "", "app"),
        ("/usr/bin/python3.11 -W ignore tools/train.py --epochs 3", "train.py", "python3.11 train.py"),
        ("python3 -m http.server 80", "http.server", "python3 http.server"),
        ("python3 -c print(1) x.py", "", "python3"),
        ("java -Xmx2g -cp a.jar:b.jar -XX:+UseNUMA org.app.Main in.txt", "org.app.Main", "java org.app.Main"),
        ("java -jar /opt/app/server.jar", "server.jar", "java server.jar"),
        ("sh -x ./run.sh 8", "run.sh", "sh run.sh"),
        ("python3", "", "python3"),
        ("pythonic a.py", "", "pythonic"),
        ("python3 -Bm http.server 80", "http.server", "python3 http.server"),
        ("python3 -mhttp.server 80", "http.server", "python3 http.server"),
        ("python3 -Wignore -Xdev a.py", "a.py", "python3 a.py"),
        ("python3 -OO -W error a.py", "a.py", "python3 a.py"),
        ("python3 -Ic print(1) x", "", "python3"),
        ("python3 - 8", "", "python3"),
        ("bash -lc ./app 4", "", "bash"),
        ("sh -e run.sh 8", "run.sh", "sh run.sh"),
        ("bash -euo pipefail run.sh", "run.sh", "bash run.sh"),
        ("perl -lane print", "", "perl"),
        ("perl -w count.pl", "count.pl", "perl count.pl"),
        ("julia -t 8 -p 2 fit.jl", "fit.jl", "julia fit.jl"),
        ("php -r phpinfo(); x", "", "php"),
        ("node --max-old-space-size=4096 -r dotenv serve.js", "serve.js", "node serve.js"),
        ("", "", ""),
    ],
)
def test_names(line: str, script: str, name: str) -> None:
    assert (script_name(line.split()), program_name(line.split())) == (script, name)


@pytest.mark.parametrize(
    ("line", "executable", "script"),
    [
        ("/usr/bin/python3 tools/train.py", "python3.11", "tools/train.py"),
        ("bash run.sh", "dash", "run.sh"),
        # It starts another program, which is what is known by its name.
        ("sh run.sh", "app", ""),
        ("bash run.sh", "python3", ""),
        # Started by its own name.
        ("./tools/train.py 8", "python3.11", "./tools/train.py"),
        ("./run.sh 8", "app", ""),
        ("./run.sh 8", "python3", ""),
        ("mpirun python3 train.py", "python3", ""),
        ("./app", "app", ""),
    ],
)
def test_scripts_by_what_really_ran(line: str, executable: str, script: str) -> None:
    assert script_path(line.split(), executable) == script


def test_scripts_that_start_one_program_do_not_tell() -> None:
    small, large = ["sh", "run.sh", "8"], ["sh", "run16.sh"]
    assert other_script(small, large)
    assert not other_script(small, large, ("app", "app"))
    assert other_script(["python3", "a.py"], ["python3.11", "b.py"], ("python3.11", "python3.11"))


def test_a_job_s_launcher_is_not_the_plan_s_program() -> None:
    assert own_words(["mpirun", "-n", "2", "./app", "5"], "app") == ["./app", "5"]
    assert own_words(["./app", "5"], "") == ["./app", "5"]


@pytest.mark.parametrize(
    ("line", "executable", "words"),
    [
        ("/opt/bin/mpirun --oversubscribe -n 4 ./app 5", "app", "./app 5"),
        ("mpiexec.hydra -n 4 python3 fit.py", "python3", "python3 fit.py"),
        ("srun -n 4 ./run.sh", "app", ""),  # which starts the app, with words that nobody knows
        ("mpirun -n 1 ./app : -n 3 ./other", "app", ""),
        ("mpirun -n 4", "", ""),
        ("mpirun", "mpirun", ""),
        ("env A=1 ./app", "app", "env A=1 ./app"),  # of a rank that was recorded by itself
    ],
)
def test_what_a_rank_runs(line: str, executable: str, words: str) -> None:
    assert rank_words(line.split(), executable) == words.split()


def test_a_program_without_a_name_is_told_so() -> None:
    with pytest.raises(UsageError, match=r"^'': no such program"):
        find_program([""])
