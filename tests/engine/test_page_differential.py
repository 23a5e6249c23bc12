"""Pages read as prometheus-client's own parsers read them whole: same samples of the named families, or both refuse.

Two differences are meant. This reader also refuses what those let pass although it cannot be one page: bodies cut short
and series that stand twice. And it holds families that nobody named to the syntax of lines only, so that an engine's
odd histogram elsewhere does not blind us.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as text_parser

from prefix_cache_exporter.engine.page import Page, PageError, PageReader

PAGES = Path(__file__).parents[1] / "pages"
PARSERS = {"text": text_parser, "openmetrics": openmetrics_parser}
CONTENT_TYPES = {"text": "text/plain; version=0.0.4", "openmetrics": "application/openmetrics-text; version=1.0.0"}
QUICK = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
SLIPS = (ValueError, IndexError, KeyError, TypeError, AttributeError)

PARTS = ("", "_total", "_bucket", "_sum", "_count")

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def reference(text: str, dialect: str) -> Samples | None:
    """Every sample as the parser reads the whole page, or None where it refuses. Counters without `_total`."""
    found: Samples = {}
    try:
        for family in PARSERS[dialect](text):
            for sample in family.samples:
                key = (sample.name.removesuffix("_total"), tuple(sorted(sample.labels.items())))
                found[key] = float(sample.value)
    except SLIPS:
        return None
    return found


def read(reader: PageReader, text: str, dialect: str) -> Page | PageError:
    try:
        return reader.read(text.encode(), CONTENT_TYPES[dialect])
    except PageError as error:
        return error


def ours(page: Page) -> Samples:
    return {
        (sample.name.removesuffix("_total"), tuple(sorted(sample.labels.items()))): sample.value
        for family in page.families.values()
        for sample in family.samples
    }


def theirs(everything: Samples, page: Page) -> Samples:
    """Those of everything that belong to the page's wanted families, by name."""
    parts = {"histogram": PARTS[2:], "gauge": PARTS[:1], "counter": PARTS[:2]}
    names = {
        (family.name + part).removesuffix("_total")
        for family in page.families.values()
        for part in parts.get(family.type, PARTS)
    }
    return {key: value for key, value in everything.items() if key[0] in names}


def same(one: Samples, other: Samples) -> bool:
    return one.keys() == other.keys() and all(
        value == other[key] or (math.isnan(value) and math.isnan(other[key])) for key, value in one.items()
    )


NUMBERS = st.one_of(
    st.integers(0, 2**53).map(str),
    st.floats(0).map(repr),
    st.sampled_from(["1e+04", "1.795974e+09", ".5", "5.", "1E3", "+Inf", "0", "-0"]),
)
ANY_NUMBERS = st.one_of(NUMBERS, st.floats().map(repr), st.sampled_from(["NaN", "-Inf", "nan", "-1.5"]))
LABEL_VALUES = st.one_of(
    st.sampled_from(
        ["0", "1", "org/Model-2.5", "", "a b", "} 1", "{", ",", "=", " # {", 'quo"te', "back\\slash", "\\n", "\n", "é"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
LABELS = st.dictionaries(st.sampled_from(["engine", "model_name", "pid", "_x"]), LABEL_VALUES, max_size=3)
NAMES = ["a", "a_b", "vllm:prompt_tokens", "vllm:iteration_tokens_total", "lookups_created_by", "b.c", "x_count", "_"]


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def series(name: str, labels: dict[str, str], extra: str = "") -> str:
    pairs = [f'{label}="{escaped(value)}"' for label, value in labels.items()]
    pairs += [extra] if extra else []
    if "." in name:
        return "{" + ",".join([f'"{name}"', *pairs]) + "}"
    return name + ("{" + ",".join(pairs) + "}" if pairs else "")


@st.composite
def families(draw, dialect: str) -> list[list[str]]:
    """The lines of each family of one page, well-formed."""
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)):
        kind = draw(st.sampled_from(["counter", "gauge", "histogram", "unknown"]))
        if kind == "counter" and name.endswith("_total"):
            kind = "gauge"
        plain = "." not in name
        declared = f"{name}_total" if kind == "counter" and dialect == "text" and plain else name
        quoted = declared if plain else f'"{declared}"'
        lines = []
        if draw(st.booleans()) or dialect == "openmetrics":
            lines += [f"# HELP {quoted} Some \\\\ help."] if draw(st.booleans()) else []
            type_ = "untyped" if kind == "unknown" and dialect == "text" else kind
            lines += [f"# TYPE {quoted} {type_}"]
        for labels in draw(st.lists(LABELS, max_size=3, unique_by=lambda each: tuple(sorted(each.items())))):
            tail = ""
            if draw(st.integers(0, 5)) == 0:
                tail = " 1700000000" if dialect == "openmetrics" else " 1700000000000"
            if kind == "histogram":
                counts = sorted(draw(st.lists(st.integers(0, 10**6), min_size=3, max_size=3)))
                exemplar = ' # {trace_id="a } b"} 0.5 1700000000.1' if draw(st.booleans()) else ""
                lines += [
                    series(f"{name}_bucket", labels, f'le="{le}"') + f" {count}{tail}{exemplar}"
                    for le, count in zip(("0.5", "1.0", "+Inf"), counts, strict=True)
                ]
                total = draw(NUMBERS)
                lines += [
                    f"{series(f'{name}_count', labels)} {counts[-1]}{tail}",
                    f"{series(f'{name}_sum', labels)} {total}{tail}",
                ]
            elif kind == "counter":
                sample = f"{name}_total" if plain or dialect == "openmetrics" else name
                lines.append(f"{series(sample, labels)} {draw(NUMBERS)}{tail}")
            else:
                lines.append(f"{series(name, labels)} {draw(ANY_NUMBERS)}{tail}")
        found.append(lines)
    return found


@st.composite
def pages(draw, dialect: str) -> str:
    """A whole page. Text lines may stand in any order of families, have odd white space, and comments between them."""
    groups = draw(families(dialect))
    if dialect == "openmetrics":
        return "\n".join([line for group in groups for line in group] + ["# EOF", ""])
    lines = [line for group in groups for line in group]
    if draw(st.booleans()):
        lines = draw(st.permutations(lines))
    if draw(st.booleans()):
        odd = st.sampled_from(["{}", " {}", "{} ", "{}\r", "\n{}", "# note\n{}", "#\n{}", "\t{}"])
        lines = [draw(odd).replace("{}", line, 1) for line in lines]
    return "\n".join([*lines, ""])


WANTED = st.sets(st.sampled_from(NAMES), min_size=1)
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 2),
        st.sampled_from([*'"\\{}=,# \n\t_1aN.+-', '",', "} ", "\n\n", " 1\n", "# EOF\n"]),
    ),
    min_size=1,
    max_size=3,
)


def edited(text: str, edits: list[tuple[float, int, str]]) -> str:
    for where, cut, put in edits:
        place = int(where * len(text))
        text = text[:place] + put + text[place + cut :]
    return text


def check(reader: PageReader, text: str, dialect: str) -> None:
    dialect = "openmetrics" if text.endswith("# EOF\n") else dialect
    everything = reference(text, dialect)
    page = read(reader, text, dialect)
    if isinstance(page, PageError):
        meant = page.reason in ("duplicate", "truncated", "empty") or "declared as" in page.detail
        # The text parser does not look at a type that the next line takes back.
        meant = meant or "Invalid metric type" in page.detail
        # The OpenMetrics parser lets some time stamps pass that are no numbers, like `1700000000.+1`, and takes any
        # character for the space before a value.
        meant = meant or "two ways" in page.detail or reference(text, "text") is None
        assert everything is None or meant, page
    elif everything is not None:
        assert same(ours(page), theirs(everything, page))
    else:
        assert dialect == "openmetrics", "accepted what the text parser refuses"
        assert not breaks_within(text, page)


def breaks_within(text: str, page: Page) -> bool:
    """Whether the wanted families alone are refused too, so that the page should have been."""
    names = {family + part for family in page.families for part in PARTS}
    name = re.compile(r'(?:# [A-Z]+ )?(?:\{?"((?:[^"\\]|\\.)*)"|([\w:.]*))')
    lines = [line for line in text.split("\n")[:-2] if "".join(name.match(line).groups("")) in names]
    return reference("\n".join([*lines, "# EOF", ""]), "openmetrics") is None


@pytest.mark.parametrize("dialect", ["text", "openmetrics"])
@given(data=st.data())
@settings(QUICK, max_examples=100)
def test_generated_pages(dialect, data):
    reader = PageReader(data.draw(WANTED))
    text = data.draw(pages(dialect))
    assert reference(text, dialect) is not None
    check(reader, text, dialect)
    check(reader, text, dialect)  # remembered series read the same


@pytest.mark.parametrize("dialect", ["text", "openmetrics"])
@given(data=st.data())
@settings(QUICK, max_examples=250)
def test_broken_pages(dialect, data):
    """A page, then the same with a few characters changed: what was remembered must not hide what is now wrong."""
    reader = PageReader(data.draw(WANTED))
    text = data.draw(pages(dialect))
    check(reader, text, dialect)
    check(reader, edited(text, data.draw(EDITS)), dialect)


RECORDED = sorted(PAGES.glob("**/*.prom"))


def as_openmetrics(text: str) -> str:
    """A page of prometheus-client's as its OpenMetrics exposition would have it."""
    lines = []
    counters = {
        line.split()[2] for line in text.splitlines() if line.startswith("# TYPE") and line.endswith(" counter")
    }
    for line in text.splitlines():
        if "_created" in line:  # they stand apart in text, and between their family's samples here
            continue
        words = line.split(" ", 3)
        if words[0] == "#":
            words[2] = words[2].removesuffix("_total") if words[2] in counters else words[2]
        lines.append(" ".join(words))
    return "\n".join([*lines, "# EOF", ""])


@pytest.mark.parametrize("folder", sorted({page.parent.name for page in RECORDED}))
@pytest.mark.parametrize("dialect", ["text", "openmetrics"])
def test_recorded_pages(dialect, folder):
    recorded = [page for page in RECORDED if page.parent.name == folder][::6]
    names = {family.name for family in text_parser(recorded[0].read_text())}
    reader = PageReader({name.removesuffix("_created") for name in names})
    for page in recorded:
        text = page.read_text()
        if dialect == "openmetrics":
            text = as_openmetrics(text)
        everything = reference(text, dialect)
        found = read(reader, text, dialect)
        assert everything
        assert same(ours(found), {key: value for key, value in everything.items() if not key[0].endswith("_created")})
