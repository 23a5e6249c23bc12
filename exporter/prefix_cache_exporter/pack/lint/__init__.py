"""Holds generated rules to this project's rules and to those of pint and dashboard-linter that need no server."""

from __future__ import annotations

from .expressions import Problem
from .files import Finding, expression_problems, lint
from .known import Known, known_series

__all__ = ["Finding", "Known", "Problem", "expression_problems", "known_series", "lint"]
