from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter.status.markup import sparkline, tag
from prefix_cache_exporter.status.page import POLICY
from support.browser import chromium
from support.status import World, story

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

HOSTILE = '"><script>document.title="owned"</script><img src=x onerror=alert(1)>&lt;\x00\x1b'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


def opened(browser: Browser, world: World, **options: object) -> Page:
    """The page as the exporter serves it, with its policy; any other request fails the test."""
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]  # options of new_context
    strays: list[str] = []
    page.on("request", lambda request: strays.append(request.url))
    page.on("console", lambda message: strays.append(message.text))
    headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY}
    page.route("http://status.test/", lambda route: route.fulfill(body=world.page.render(), headers=headers))
    page.goto("http://status.test/")
    assert strays == ["http://status.test/"]
    return page


def width(page: Page) -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


@pytest.mark.browser
def test_a_person_reads_state_and_both_sides_of_each_ratio(browser: Browser) -> None:
    page = opened(browser, story())
    assert page.title() == "prefix cache: 1 of 2 sources need a look"
    assert [head.inner_text() for head in page.query_selector_all("h2")] == ["llama-b", "llama-a"]  # trouble first
    card = page.locator("section.good")
    row = card.locator("tr", has_text="Eligible-prefix effectiveness")
    assert "75.0%" in row.inner_text()
    assert "1,843,200 / 2,457,600 tokens" in row.inner_text()
    assert "every resumed request" in card.inner_text().lower()
    assert card.locator("svg polyline").count() >= 10
    assert page.locator("section.bad").inner_text().count("no traffic") == 2 * 2


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ink_and_ground_differ_in_light_and_dark(browser: Browser, scheme: str) -> None:
    page = opened(browser, story(), color_scheme=scheme)
    ink, ground = (
        page.evaluate(f"getComputedStyle(document.body).{what}.match(/\\d+/g).slice(0, 3).map(Number)")
        for what in ("color", "backgroundColor")
    )
    assert (sum(ink) < sum(ground)) is (scheme == "light")
    assert abs(sum(ink) - sum(ground)) > 450


@pytest.mark.browser
@pytest.mark.parametrize("pixels", [360, 768, 1440])
def test_nothing_is_wider_than_a_phone_or_a_desk(browser: Browser, pixels: int) -> None:
    world = story()
    world.engine("a-source-with-a-name-of-sixty-three-characters-without-any-spa", model="m" * 200)
    assert width(opened(browser, world, viewport={"width": pixels, "height": 800})) == 0


@pytest.mark.browser
def test_hostile_label_values_stay_text(browser: Browser) -> None:
    world = World()
    world.add(HOSTILE, revision=HOSTILE, engine_prompt_tokens=1)
    world.engine(HOSTILE, model=HOSTILE, state=HOSTILE)
    page = opened(browser, world)
    assert page.title() == "prefix cache: 1 of 1 sources need a look"
    assert page.locator("script, img").count() == 0
    assert '"><script>' in page.locator("h2").inner_text()


@pytest.mark.browser
def test_fifty_sources_on_one_page(browser: Browser) -> None:
    world = World()
    for number in range(50):
        world.add(f"vllm-{number:02}", engine_prompt_tokens=10, engine_cached_prompt_tokens=5)
        world.engine(f"vllm-{number:02}", up=number != 17)
    page = opened(browser, world)
    assert page.locator("section").count() == 50
    assert page.locator("h2").first.inner_text() == "vllm-17"
    assert width(page) == 0


def test_a_fresh_exporter_says_that_it_has_nothing_yet() -> None:
    html = World().html()
    assert "No source has been configured" in html
    assert '<meta http-equiv="refresh" content="10">' in html
    assert '<a href="/metrics">Metrics</a>' in html


def test_how_often_a_write_is_read_is_no_percentage() -> None:
    world = World()
    world.add("a", usage_cached_prompt_tokens=592, usage_written_prompt_tokens=100)
    assert '<div class="value">5.92</div><div class="sides">592 / 100 tokens</div>' in world.html()


def test_a_source_without_numbers_says_so() -> None:
    world = World()
    world.engine("a")
    assert "nothing has been counted" in world.html()


def test_a_lone_point_of_a_sparkline_is_a_dot() -> None:
    svg = sparkline([None, 0.5, None], "t")
    assert [child.tag for child in svg] == ["title", "circle"]
    assert svg[1].attrib["cy"] == "14.0"


def test_text_may_stand_between_elements() -> None:
    element = tag("p", "a", tag("b", "c"), "d", None, "e")
    assert (element.text, element[0].tail) == ("a", "de")
