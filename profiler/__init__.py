"""Record a run of a program: the backends, the perf.data decoder, the trace, and sampling of what runs.

The public names are listed in `__init__.pyi`; each is loaded when it is first used.
"""

import lazy_loader

from numaplan.machine import Core as Core, Machine as Machine, Node as Node

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
