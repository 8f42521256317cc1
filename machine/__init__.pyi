from .cpusets import format_list as format_list, parse_list as parse_list
from .model import Machine as Machine
from .topology import MAX_CPUS as MAX_CPUS, Cache as Cache, Core as Core, Node as Node
