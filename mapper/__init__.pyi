from .jobs.document import (
    JobPlan as JobPlan,
    JobPredicted as JobPredicted,
    JobRank as JobRank,
)
from .jobs.reports import AppliedRank as AppliedRank
from .memory.pages import place_pages as place_pages
from .online.actions import (
    Action as Action,
    MovePages as MovePages,
    MoveThread as MoveThread,
    Policy as Policy,
)
from .online.arithmetic import assign as assign, groups_of as groups_of
from .online.observation import (
    CROWDED as CROWDED,
    Flags as Flags,
    Floats as Floats,
    Ints as Ints,
    MachineView as MachineView,
    Observation as Observation,
    Pages as Pages,
    Processes as Processes,
    Threads as Threads,
    Touches as Touches,
    age_weight as age_weight,
)
from .online.policies.page_sets import (
    NUMBER_END as NUMBER_END,
    find_rows as find_rows,
    page_keys as page_keys,
    split_keys as split_keys,
)
from .online.registry import make_policy as make_policy, policy_names as policy_names
from .plan_file.parts import (
    Blocks as Blocks,
    Metrics as Metrics,
    PlanApp as PlanApp,
    PlanMachine as PlanMachine,
    PlanRegion as PlanRegion,
    PlanThread as PlanThread,
    Predicted as Predicted,
    RegionKey as RegionKey,
    Run as Run,
    Scales as Scales,
)
from .plan_file.plan import Plan as Plan
from .plan_file.ranks import ranks_elsewhere as ranks_elsewhere
from .planning.options import PlanOptions as PlanOptions
from .planning.planner import make_plan as make_plan
from .store.keys import (
    ProgramKey as ProgramKey,
    class_name as class_name,
    is_rank_alone as is_rank_alone,
    program_key as program_key,
)
from .store.notes import Use as Use
from .store.opening import open_store as open_store
from .store.places import store_address as store_address
from .store.store import (
    Found as Found,
    PlanStore as PlanStore,
    StoredPlan as StoredPlan,
    misfit as misfit,
    with_executable as with_executable,
)
from .threads.cost import evaluate as evaluate
from .threads.mapping import map_threads as map_threads
from .threads.methods import METHODS as METHODS
from .threads.seats import assign_cpus as assign_cpus
from .workload.runs import workload_of_traces as workload_of_traces
from .workload.workload import Workload as Workload
