"""The costs of a placement, as they stand in a plan and in every comparison."""

import msgspec


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What a placement costs; communication in the unit of the matrix, load in that of the load vector.

    remote_comm: communication between threads on different nodes; remote_share: the same over all
    communication (0 when there is none); hop_cost: communication times distance, over all pairs;
    node_loads: (K,) load of each node that has cpus, in the machine's order; load_std: population deviation
    of those sums; load_std_mean: the same of the mean load a thread on each node (CMLB paper, Eq. 8-9).
    """

    remote_comm: float
    remote_share: float
    hop_cost: float
    load_std: float
    node_loads: tuple[float, ...] = ()
    load_std_mean: float = 0.0
