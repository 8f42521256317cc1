"""A run's identity from the folder that the preload library logged into."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from .control import ProcessEntry, read_control
from .image import Image, read_image
from .log import read_logs
from .marks import marked_spans
from .records import (
    Identity,
    ProcessRecord,
    RegionRecord,
    ThreadRecord,
    inherited_modules,
    inherited_regions,
)
from .regions import inherited, regions_of


def read_identity(workdir: Path) -> Identity:
    """Processes, threads, regions and modules that the preload library saw; empty when it saw nothing.

    Everything in the files is checked; what does not verify is left out and counted in `lost`.
    """
    entries = read_control(workdir)
    images: dict[int, Image] = {}
    for log in read_logs(workdir):
        if log.entry < len(entries):
            parent = images.get(log.parent_image)
            images[log.image] = read_image(log, entries[log.entry].name, parent)
    lines = _images_of_processes(entries, images)
    _end_replaced(lines)
    regions: list[RegionRecord] = []
    for image in images.values():
        own = regions_of(image)
        image.regions = own + inherited(image, images.get(image.log.parent_image))
        regions += image.regions
    modules = [module for image in images.values() for module in image.modules]
    for parent, entry, until in _without_log(entries, images, lines):
        regions += inherited_regions(parent.regions, entry.name, entry.pid, entry.start_ns, until)
        modules += inherited_modules(parent.modules, entry.name, entry.pid, entry.start_ns)
    return Identity(
        tuple(_process(entries, index, lines[index], images) for index in range(len(entries))),
        tuple(_threads(entries, lines)),
        tuple(regions),
        tuple(modules),
        sum(image.log.lost for image in images.values()),
        marked_spans(entries, lines),
    )


def _images_of_processes(entries: list[ProcessEntry], images: dict[int, Image]) -> list[list[Image]]:
    lines: list[list[Image]] = [[] for _ in entries]
    for image in images.values():
        lines[image.log.entry].append(image)
    for line in lines:
        line.sort(key=lambda image: image.log.start_ns)
    return lines


def _end_replaced(lines: list[list[Image]]) -> None:
    """An image ends when its process execs the next."""
    for line in lines:
        for image, following in pairwise(line):
            image.end_ns = following.log.start_ns


def _process(
    entries: list[ProcessEntry], index: int, line: list[Image], images: dict[int, Image]
) -> ProcessRecord:
    entry = entries[index]
    parent = entries[entry.parent].name if entry.parent >= 0 else ""
    image = line[-1] if line else images.get(entry.parent_image)
    argv, executable, build_id = (image.argv, image.executable, image.build_id) if image else ((), "", "")
    return ProcessRecord(
        entry.name, entry.pid, parent, argv, executable, build_id, entry.start_ns, entry.end_ns
    )


def _threads(entries: list[ProcessEntry], lines: list[list[Image]]) -> list[ThreadRecord]:
    found: list[ThreadRecord] = []
    for entry, line in zip(entries, lines, strict=True):
        main = ThreadRecord(entry.name, "0", entry.pid, entry.pid, "", entry.start_ns, entry.end_ns)
        others: list[ThreadRecord] = []
        for image in line:
            for thread in image.threads:
                if thread.path == "0":  # one thread through every exec
                    main = replace(main, name=thread.name or main.name)
                else:
                    others.append(replace(thread, end_ns=_sooner(thread.end_ns, image.end_ns)))
        found += [main, *others]
    return found


def _without_log(
    entries: list[ProcessEntry], images: dict[int, Image], lines: list[list[Image]]
) -> Iterator[tuple[Image, ProcessEntry, int]]:
    """Forked children that made nothing large: no log, but until some time their parent's memory."""
    for entry, line in zip(entries, lines, strict=True):
        parent = images.get(entry.parent_image)
        if parent is not None and not any(image.log.parent_image for image in line):
            until = line[0].log.start_ns if line else entry.end_ns
            yield parent, entry, until


def _sooner(one: int, other: int) -> int:
    ends = [end for end in (one, other) if end >= 0]
    return min(ends) if ends else -1
