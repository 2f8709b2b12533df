"""Parents: children are searched, parents give context."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from services.documents.sections import Section


def parent_ranges(
    sections: Sequence[Section], chunk_sections: Sequence[int], tokens: Sequence[int], limit: int
) -> list[tuple[int, int]]:
    """For each chunk the range [first, last) of chunks that is its parent, at most `limit` tokens unless one is larger.

    It is the largest enclosing section that fits; inside a section that does not, runs of chunks that do.
    `chunk_sections` is rising: the section each chunk stands in.
    """
    ends = [0, *accumulate(tokens)]
    subtree = _subtree_ends(sections)
    ranges: list[tuple[int, int]] = []
    chosen: dict[int, tuple[int, int] | None] = {}
    group: tuple[int, int] = (0, 0)
    for number, section in enumerate(chunk_sections):
        if section not in chosen:
            chosen[section] = _fitting_section(sections, section, subtree, chunk_sections, ends, limit)
        whole = chosen[section]
        if whole is not None:
            ranges.append(whole)
            continue
        if not group[0] <= number < group[1]:
            group = _group(number, section, chunk_sections, ends, limit)
        ranges.append(group)
    return ranges


def _subtree_ends(sections: Sequence[Section]) -> list[int]:
    """For each section the number of the first later section that is not inside it."""
    result = [len(sections)] * len(sections)
    open_sections: list[int] = []
    for number, section in enumerate(sections):
        while open_sections and sections[open_sections[-1]].level >= section.level:
            result[open_sections.pop()] = number
        open_sections.append(number)
    return result


def _fitting_section(
    sections: Sequence[Section],
    section: int,
    subtree: Sequence[int],
    chunk_sections: Sequence[int],
    ends: Sequence[int],
    limit: int,
) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    current: int | None = section
    while current is not None:
        first = bisect_left(chunk_sections, current)
        last = bisect_left(chunk_sections, subtree[current])
        if ends[last] - ends[first] > limit:
            break
        best = (first, last)
        current = sections[current].parent
    return best


def _group(
    number: int, section: int, chunk_sections: Sequence[int], ends: Sequence[int], limit: int
) -> tuple[int, int]:
    last = number + 1
    while last < len(chunk_sections) and chunk_sections[last] == section and ends[last + 1] - ends[number] <= limit:
        last += 1
    return number, last
