from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prefix_cache_exporter.recorder import Recorder


class Housekeeping:
    """The commit loop: writes what workers have applied, shows it, then does the other regular chores.

    Args:
        recorder: what is committed.
        chores: done after each commit.
        seconds: between two commits.
    """

    caught_up = True

    def __init__(self, recorder: Recorder, chores: Sequence[Callable[[], object]], seconds: float) -> None:
        self._recorder, self._chores = recorder, chores
        self.seconds = seconds

    def step(self, *, draining: bool) -> float | None:  # noqa: ARG002  # it goes on until it is stopped
        """Commits once; the recorder counts and reports a disk that refuses."""
        self._recorder.commit()
        for chore in self._chores:
            chore()
        return self.seconds
