from .cache_domains import CacheDomains as CacheDomains, divided_by_caches as divided_by_caches
from .cache_model import (
    LINE as LINE,
    MOST_SIZES as MOST_SIZES,
    USUAL_CACHES as USUAL_CACHES,
    cache_arguments as cache_arguments,
    cache_shape as cache_shape,
    domains_of as domains_of,
    larger_sizes as larger_sizes,
    last_level_sizes as last_level_sizes,
    machine_shapes as machine_shapes,
    seat_arguments as seat_arguments,
    size_word as size_word,
)
from .cluster import Cluster as Cluster, Host as Host
from .cost import (
    ACCESS_NS as ACCESS_NS,
    OVERLAP as OVERLAP,
    PAGE_LINES as PAGE_LINES,
    Cost as Cost,
    bandwidths as bandwidths,
    latencies as latencies,
    mean_transfers as mean_transfers,
    memory_waits as memory_waits,
    placement_cost as placement_cost,
    queue_waits as queue_waits,
    transfers as transfers,
)
from .cpusets import format_list as format_list, own_cpuset as own_cpuset, parse_list as parse_list
from .hosts.hostfile import ListedHost as ListedHost, hosts_of_file as hosts_of_file
from .hosts.slurm import slurm_distances as slurm_distances, slurm_hosts as slurm_hosts
from .model import Machine as Machine
from .sysfs import read_sysfs as read_sysfs
from .topology import MAX_CPUS as MAX_CPUS, MAX_NODES as MAX_NODES, Cache as Cache, Core as Core, Node as Node
