"""What all sandboxes of one server share."""

from __future__ import annotations

from dataclasses import dataclass

from infra.e2b_local.host_places import Places
from infra.e2b_local.process_group_limits import ProcessGroups
from schemas.sandboxes import SandboxLimits


@dataclass(frozen=True)
class Host:
    """Where things are, how processes are bounded, and by how much."""

    places: Places
    groups: ProcessGroups
    limits: SandboxLimits
