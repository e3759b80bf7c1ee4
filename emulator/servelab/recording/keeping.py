"""The recordings of a run, on disk as soon as each is finished."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Kept:
    """A file of recordings, in the order of ``wanted``; each is the name of one."""

    path: Path
    wanted: Sequence[str]
    _found: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, name: str, recording: Mapping[str, Any]) -> None:
        """Write the file anew with that one too, at once or not at all."""
        self._found[name] = recording
        listed = [self._found[each] for each in self.wanted if each in self._found]
        partial = self.path.with_name(f"{self.path.name}.partial")
        partial.write_text(json.dumps(listed, indent=1) + "\n")
        partial.replace(self.path)

    @property
    def missing(self) -> Sequence[str]:
        """Those that there is no recording of."""
        return [each for each in self.wanted if each not in self._found]

    def told(self) -> str:
        """What there is, and what is missing."""
        have = len(self.wanted) - len(self.missing)
        # A file that was there before is not ours.
        sentence = f"wrote {have} recordings to {self.path}" if have else "nothing was recorded"
        return sentence + (f"; missing: {' '.join(self.missing)}" if self.missing else "")
