"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples each time, however busy the machine is.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")
