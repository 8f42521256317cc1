import numaplan.machine

from .backends.base import (
    WATCHING as WATCHING,
    Capability as Capability,
    PerfChoices as PerfChoices,
    ProgramStart as ProgramStart,
    Progress as Progress,
    Recording as Recording,
    RecordRequest as RecordRequest,
)
from .backends.emulation.clock import translated_identity as translated_identity
from .backends.emulation.filter import (
    SampleFilter as SampleFilter,
    runtime_code as runtime_code,
    runtime_filter as runtime_filter,
)
from .backends.emulation.options import (
    EmulateOptions as EmulateOptions,
    read_emulate_options as read_emulate_options,
)
from .backends.emulation.page_uses import PageUses as PageUses, read_page_uses as read_page_uses
from .backends.emulation.progress import ticking as ticking
from .backends.emulation.qemu import (
    plugin_interface as plugin_interface,
    qemu_version as qemu_version,
    x86_cpu as x86_cpu,
)
from .backends.emulation.result import emulated_recording as emulated_recording
from .backends.emulation.running import read_looks as read_looks
from .backends.emulation.spool import (
    THREAD_RECORD as THREAD_RECORD,
    EmulatedLevels as EmulatedLevels,
    ProcessSpool as ProcessSpool,
)
from .backends.emulation.transfers import (
    TransferStretch as TransferStretch,
    read_transfers as read_transfers,
)
from .backends.emulation.word import SharedWord as SharedWord
from .backends.live_line import Rate as Rate, live_line as live_line
from .backends.part import RecordedPart as RecordedPart, Switch as Switch
from .backends.perf.faults import hint_faults_live as hint_faults_live
from .debug.choosing import LIBRARY_FOLDERS as LIBRARY_FOLDERS, LIBRARY_PARTS as LIBRARY_PARTS
from .export.formats import write_perfetto as write_perfetto
from .identity.control import read_control as read_control
from .identity.elf import ElfFacts as ElfFacts, elf_facts as elf_facts
from .identity.environment import of_no_other as of_no_other, prepare as prepare
from .identity.executable import executable_of as executable_of
from .identity.image import read_image as read_image
from .identity.log import Record as Record, read_logs as read_logs
from .identity.named_machine import machine_named as machine_named
from .identity.rank import (
    first_process as first_process,
    job_facts as job_facts,
    ranks_here as ranks_here,
)
from .identity.read import read_identity as read_identity
from .identity.records import (
    Identity as Identity,
    ModuleRecord as ModuleRecord,
    ProcessRecord as ProcessRecord,
    RegionRecord as RegionRecord,
    ThreadRecord as ThreadRecord,
)
from .identity.static import build_id_of as build_id_of, static_objects as static_objects
from .page_use_block import PageUseBlock as PageUseBlock
from .perfdata.decode import Decoded as Decoded, decode_perf as decode_perf
from .perfdata.file.source import PerfDataError as PerfDataError
from .perfdata.stream import StreamDecoder as StreamDecoder
from .recording.record import RecordOptions as RecordOptions, RecordSummary as RecordSummary, record as record
from .recording.threads import path_key as path_key
from .running_block import RunningBlock as RunningBlock
from .sample_block import SampleBlock as SampleBlock
from .sampling.samplers import live_events as live_events, start_sampler as start_sampler
from .sampling.samples import (
    LiveEvents as LiveEvents,
    LiveSamples as LiveSamples,
    Sampler as Sampler,
    no_samples as no_samples,
)
from .trace.database import is_trace as is_trace
from .trace.function_names import short_function as short_function
from .trace.reader import Trace as Trace
from .trace.rows import RegionKey as RegionKey, SourceName as SourceName
from .trace.schema import (
    EVENT_CODE as EVENT_CODE,
    EVENTS as EVENTS,
    LEVEL_CODE as LEVEL_CODE,
    LEVELS as LEVELS,
    MESSAGE_KINDS as MESSAGE_KINDS,
    MOST_RANKS as MOST_RANKS,
)
from .trace.writer import TraceWriter as TraceWriter
from .transfer_block import TransferBlock as TransferBlock

Core = numaplan.machine.Core
Machine = numaplan.machine.Machine
Node = numaplan.machine.Node
