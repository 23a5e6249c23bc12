"""What is written for people: links lead somewhere, names of series and commands exist, the port is the program's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prefix_cache_exporter import cli, measures
from prefix_cache_exporter.config.model import DEFAULT_PORT
from prefix_cache_exporter.usage.inventory import load_inventory
from prefix_cache_exporter.usage.prices.book import PriceBook

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT)
    for folder in (".", "docs", "deploy", "deploy/prometheus", "alerts", "alerts/runbooks", "metric_maps", "dashboards")
    for path in (ROOT / folder).glob("*.md")
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
SERIES = re.compile(r"`(prefix_cache_(?:engine|usage|exporter|release)_[a-z_]+)")
COMMAND = re.compile(r"(?:^\s*(?:\$ )?|[`|] ?)prefix-cache-exporter ([a-z]+(?: [a-z]+)*)", re.MULTILINE)
NAMES = {name for family in measures.FAMILIES.values() for name in (family.name, family.series_name)}


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall((ROOT / page).read_text("utf-8")):
        if target.startswith("http"):
            continue
        found = (ROOT / page).parent / target if target else ROOT / page
        assert found.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(found), f"{page}: {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_series_are_ones_that_the_exporter_has(page):
    for name in SERIES.findall((ROOT / page).read_text("utf-8")):
        assert name in NAMES or name.endswith("_"), f"{page}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_port_is_the_one_that_the_exporter_listens_on(page):
    text = (ROOT / page).read_text("utf-8")
    ports = {int(port) for port in re.findall(r"(?:localhost|127\.0\.0\.1|HOST):(\d+)", text)}
    assert ports <= {DEFAULT_PORT, 8000}, page  # 8000 is vLLM's


def test_what_is_looked_for_is_found():
    text = "".join((ROOT / page).read_text("utf-8") for page in PAGES)
    assert {"serve", "check config", "report", "usage normalise"} <= set(COMMAND.findall(text))
    assert len(set(SERIES.findall(text))) > 20


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_are_ones_that_the_program_has(page):
    inner = next(action for action in cli.parser()._actions if isinstance(action.choices, dict)).choices
    for text in COMMAND.findall((ROOT / page).read_text("utf-8")):
        first, *rest = text.split()
        assert first in inner, f"{page}: {text}"
        below = [action.choices for action in inner[first]._actions if isinstance(action.choices, dict)]
        assert not below or not rest or rest[0] in below[0], f"{page}: {text}"


def test_every_reason_of_a_failed_poll_is_in_the_troubleshooting_table():
    code = "".join(path.read_text("utf-8") for path in (ROOT / "exporter/prefix_cache_exporter/engine").glob("*.py"))
    reasons = set(re.findall(r'(?:FetchError|PageError)\(\s*"([a-z_]+)"', code))
    table = (ROOT / "docs" / "TROUBLESHOOTING.md").read_text("utf-8")
    assert "refused" in reasons
    assert [reason for reason in sorted(reasons) if f"`{reason}`" not in table] == []


def test_the_price_book_and_the_inventory_of_the_page_about_money_can_be_used(tmp_path):
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "MONEY.md").read_text("utf-8"), re.DOTALL)
    for name, block in zip(("prices.yaml", "inventory.yaml"), blocks, strict=True):
        (tmp_path / name).write_text(block)
    rates = PriceBook.load([tmp_path / "prices.yaml"]).rates(
        "openai", "gpt-6-sol", 300_000, time=1798761600.0, service_tier="priority"
    )
    assert (rates.currency, rates.input, rates.read) == ("EUR", 7_200_000 * 10**6, 720_000 * 10**6)
    inventory = load_inventory(tmp_path / "inventory.yaml")
    assert inventory.tokens("support-chat", "r42", "claude-opus-5") == 612 + 1525
    assert inventory.tokens("support-chat", "1.10", None) == 612


def test_the_worked_example_of_the_readme_comes_out_of_its_log(capsys):
    log, field = str(ROOT / "docs" / "worked-example.jsonl"), "eligible_tokens=$.metadata.eligible_tokens"
    assert cli.run(["report", log, "--format", "openai.chat", "--field", field]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Population hit ratio (usage) R 45.9 % 61,440 133,920" in said
    assert "Eligible-prefix effectiveness 75.0 % 61,440 81,920" in said
    assert "Request hit ratio H 80.0 % 80 100" in said
