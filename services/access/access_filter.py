"""The only maker of `IndexFilter`: what an actor may be shown by an index, met with what was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from schemas.access import Access
from schemas.index_records import IndexFilter
from schemas.search import SearchFilters


def index_filter(access: Access, spaces: Sequence[str] | None, filters: SearchFilters | None) -> IndexFilter:
    """`spaces` are ids; null means every space the actor can see. Spaces without a grant fall away.

    A list that was asked for and is empty matches nothing: asking for no document is not asking for all of them.
    """
    asked = access.spaces.keys() if spaces is None else [space for space in spaces if space in access.spaces]
    wanted = filters or SearchFilters()
    lists = (wanted.documents, wanted.tags, wanted.sources, wanted.media_types)
    nothing = "read" not in access.scopes or any(values is not None and not values for values in lists)
    return IndexFilter(
        tenant=access.actor.tenant,
        spaces=() if nothing else tuple(dict.fromkeys(asked)),
        readers=() if nothing else tuple(access.reader_principals),
        documents=tuple(wanted.documents or ()),
        tags=tuple(wanted.tags or ()),
        sources=tuple(wanted.sources or ()),
        media_types=tuple(wanted.media_types or ()),
        updated_after=_whole_second(wanted.updated_after),
        updated_before=_whole_second(wanted.updated_before),
    )


def _whole_second(time: datetime | None) -> int | None:
    """Unix seconds, rounded up: `after` is included and `before` is not, so up is right for both."""
    return None if time is None else math.ceil(time.timestamp())
