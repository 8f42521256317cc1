"""What a command line runs."""

import pytest

from numaplan.common import program_name, script_name


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
        ("", "", ""),
    ],
)
def test_names(line: str, script: str, name: str) -> None:
    assert (script_name(line.split()), program_name(line.split())) == (script, name)
