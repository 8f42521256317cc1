from .cache_model import (
    LINE as LINE,
    MAX_WAYS as MAX_WAYS,
    SETS as SETS,
    cache_arguments as cache_arguments,
    machine_shapes as machine_shapes,
    modelled_shape as modelled_shape,
    seat_arguments as seat_arguments,
)
from .cost import Cost as Cost, placement_cost as placement_cost
from .cpusets import format_list as format_list, parse_list as parse_list
from .model import Machine as Machine
from .topology import MAX_CPUS as MAX_CPUS, Cache as Cache, Core as Core, Node as Node
