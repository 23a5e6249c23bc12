"""How the package is put together: nothing imports in a circle, and each part only what stands below it."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "exporter" / "prefix_cache_exporter"

# A part may import what stands on a line below its own; parts on one line know nothing of each other.
LAYERS = """
__main__
cli
demo
serve
collector config pack report simulator
web
release_board status
engine usage
recorder release state tokens
room
ledger
labels
documents logs measures
mistakes
"""
NOT_FOR_A_REPORT = ("email", "http", "jsonschema", "logging", "socket", "sqlite3", "cheroot", "requests")


def modules():
    """Every module by its dotted name below the package."""
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


MODULES = dict(modules())


def imported(tree, package):
    """Names that a module imports when it runs or is called, those for type checkers left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*parent, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        yield from imported(node, package)


def edges(name):
    file = MODULES[name]
    within = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for full in imported(ast.parse(file.read_text()), [ROOT.name, *filter(None, within)]):
        if full.split(".")[0] == ROOT.name:
            below = full.removeprefix(ROOT.name).strip(".")
            found = below if below in MODULES else below.rpartition(".")[0]
            if found != name:
                yield found


GRAPH = {name: set(edges(name)) for name in MODULES}


def test_no_module_imports_itself_over_others():
    TopologicalSorter(GRAPH).prepare()


def test_every_part_imports_only_what_stands_below_it():
    height = {part: -place for place, line in enumerate(LAYERS.split("\n")) for part in line.split()}
    wrong = [
        f"{name} imports {other}"
        for name, others in GRAPH.items()
        for other in others
        if name and other
        if (part := name.split(".")[0]) != (below := other.split(".")[0]) and height[part] <= height[below]
    ]
    assert wrong == []


@pytest.mark.parametrize("module", NOT_FOR_A_REPORT)
def test_a_report_imports_nothing_that_only_a_server_needs(module):
    assert module not in imports_of_a_report()


@cache
def imports_of_a_report():
    program = (
        "import sys; before = set(sys.modules)  # a coverage run has its own\n"
        "from prefix_cache_exporter.__main__ import main\n"
        "main(['report', '/dev/null', '--format', 'openai.chat', '--json'])\n"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return run.stderr.split()
