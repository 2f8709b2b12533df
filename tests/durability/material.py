"""Documents for durability tests: small ones, and one with enough chunks for several embedding batches."""

from __future__ import annotations

MANY_SECTIONS = 64
"""Each section is a chunk of its own at least: four batches of sixteen."""


def short_text(name: str, limit: int = 100) -> str:
    return f"# Limits of {name}\n\nThe daily limit of {name} is {limit} orders. Ask the office before it is raised.\n"


def long_text(name: str, sections: int = MANY_SECTIONS) -> str:
    """Sections that share no sentence, so that every one needs a vector of its own."""
    return f"# Register of {name}\n\n" + "\n".join(_section(name, number) for number in range(1, sections + 1))


def _section(name: str, number: int) -> str:
    facts = " ".join(
        f"Counter {number * 31 + part} of {name} stands in hall {number * 7 + part} and is read every {part + 2} days."
        for part in range(2)
    )
    return f"## Station {number} of {name}\n\n{facts}\n"
