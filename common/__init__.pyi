from ._version import version as version
from .background import BackgroundCall as BackgroundCall
from .command_line.cli import run_command as run_command, run_tool as run_tool
from .command_line.command import (
    Argument as Argument,
    Command as Command,
    CommandGroup as CommandGroup,
    Json as Json,
    Option as Option,
)
from .command_line.frame import (
    fail as fail,
    lacks_files as lacks_files,
    leave as leave,
)
from .command_line.own_files import check_own_files as check_own_files, program_files as program_files
from .command_line.parser import read_command as read_command
from .command_line.values import (
    read_assignments as read_assignments,
    read_pids as read_pids,
    read_size as read_size,
)
from .engines import check_engine as check_engine, run_all as run_all
from .errors import (
    MachineLacksError as MachineLacksError,
    NotSoError as NotSoError,
    NumaplanError as NumaplanError,
    UsageError as UsageError,
)
from .files.temporary import swept_folder as swept_folder, temporary_folder as temporary_folder
from .files.whole import (
    atomic_output as atomic_output,
    check_named_once as check_named_once,
    check_output as check_output,
    make_folder as make_folder,
    open_now as open_now,
    output_folder as output_folder,
    read_document as read_document,
    write_document as write_document,
)
from .loading import load_native as load_native, load_numpy as load_numpy, native_part as native_part
from .memory import available_bytes as available_bytes
from .output.console import (
    counted as counted,
    in_page as in_page,
    make_console as make_console,
    print_json as print_json,
    print_lines as print_lines,
    print_point as print_point,
    printable as printable,
    printable_json as printable_json,
    shell_line as shell_line,
    tell as tell,
)
from .output.document import BAD_JSON as BAD_JSON, reviewable_json as reviewable_json, schema_of as schema_of
from .output.junit import JUnitCase as JUnitCase, errors_in_junit as errors_in_junit, junit_xml as junit_xml
from .output.notebook import cells_html as cells_html, facts_html as facts_html
from .processes.dying import die_as_program as die_as_program
from .processes.interrupts import (
    ASKING as ASKING,
    finish_first as finish_first,
    interruptible as interruptible,
    is_asked_to_end as is_asked_to_end,
    surely as surely,
    uninterrupted as uninterrupted,
)
from .processes.program import (
    as_text as as_text,
    other_script as other_script,
    own_words as own_words,
    program_name as program_name,
    rank_words as rank_words,
    script_name as script_name,
    script_path as script_path,
    starts_ranks as starts_ranks,
)
from .processes.run import (
    SHELL as SHELL,
    ended_by as ended_by,
    find_program as find_program,
    is_for_shell as is_for_shell,
    run_program as run_program,
    started_as as started_as,
)
from .setting_up import (
    cache_folder as cache_folder,
    one_setup_at_a_time as one_setup_at_a_time,
    output_of as output_of,
)
