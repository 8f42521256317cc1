"""The machine model and its readers."""

from numaplan.profiler.machine.model import Core, Machine, Node

__all__ = ["Core", "Machine", "Node"]
