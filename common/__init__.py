"""What all four packages share: errors and exit codes, the command frame, safe files."""

from numaplan.common.document import reviewable_json
from numaplan.common.errors import MachineLacksError, NotSoError, NumaplanError, UsageError
from numaplan.common.files import atomic_output, read_document, write_document
from numaplan.common.version import version

__all__ = [
    "MachineLacksError",
    "NotSoError",
    "NumaplanError",
    "UsageError",
    "atomic_output",
    "read_document",
    "reviewable_json",
    "version",
    "write_document",
]
