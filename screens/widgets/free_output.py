"""Where a proposed run may write without replacing anything."""

from __future__ import annotations

import itertools
from collections.abc import Callable


def free_output(stem: str, taken: Callable[[str], bool]) -> str:
    """`results/<stem>.jsonl`, or else `results/<stem>-2.jsonl` and so on: the first that is not `taken`."""
    numbers = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    return next(name for number in numbers if not taken(name := f"results/{stem}{number}.jsonl"))
