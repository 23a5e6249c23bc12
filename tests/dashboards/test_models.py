"""Every dashboard is what grafana-foundation-sdk's models describe: no unknown key, no other type, no other value."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from support import models
from support.boards import NAMES, board


@pytest.mark.parametrize("name", NAMES)
def test_models_know_every_key_type_and_value(name: str) -> None:
    assert models.problems(board(name)) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda panel: panel.update(colour="red"), ".colour: unknown"),
        (lambda panel: panel["options"].update(cellHight="sm"), "cellHight: unknown"),
        (lambda panel: panel["options"].update(cellHeight="huge"), "'huge' is no TableCellHeight"),
        (lambda panel: panel["fieldConfig"]["defaults"].update(noValue=0), "0 is no str"),
        (lambda panel: panel["fieldConfig"]["defaults"]["custom"].update(minWidth="60"), "'60' is no float"),
        (lambda panel: panel["targets"][0].update(instant="yes"), "'yes' is no bool"),
        (lambda panel: panel["targets"][0].update(format="tabel"), "'tabel' is no PromQueryFormat"),
        (lambda panel: panel.update(type="piechart"), "no model for piechart"),
    ],
)
def test_a_mistake_in_a_panel_is_found(change: Any, found: str) -> None:
    document = copy.deepcopy(board("overview"))
    change(next(panel for panel in document["panels"] if panel["type"] == "table"))

    assert any(found in problem for problem in models.problems(document)), models.problems(document)
