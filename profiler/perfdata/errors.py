"""The error of the decoder."""

from numaplan.common import UsageError


class PerfDataError(UsageError):
    """A perf.data file that cannot be read; `what` names the file and the offset of the damage."""
