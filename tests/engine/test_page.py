from __future__ import annotations

import math
import threading

import pytest

from prefix_cache_exporter.engine.page import Page, PageError, PageReader, Sample, read_page

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


def read(text: str, *wanted: str, content_type: str | None = TEXT) -> Page:
    return read_page(text.encode(), content_type, wanted)


def values(page: Page, family: str) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value for sample in page.families[family].samples}


def refusal(text: str | bytes, *wanted: str, content_type: str | None = TEXT) -> str:
    body = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(PageError) as caught:
        read_page(body, content_type, wanted)
    return str(caught.value)


TEXT_PAGE = """\
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="org/m"} 3072.0
# HELP vllm:prefix_cache_hits_created Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_created gauge
vllm:prefix_cache_hits_created{engine="0",model_name="org/m"} 1.7959741152695541e+09
# HELP vllm:kv_cache_usage_perc KV-cache usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="org/m"} 0.25
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0"} 1.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf"} 2.0
vllm:iteration_tokens_total_count{engine="0"} 2.0
vllm:iteration_tokens_total_sum{engine="0"} 70.0
vllm:iteration_tokens_total_created{engine="0"} 1.5e+09
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 14857.0
"""
OPENMETRICS_PAGE = """\
# HELP vllm:prefix_cache_hits Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0",model_name="org/m"} 3072 # {trace_id="a b"} 1 1520879607.789
vllm:prefix_cache_hits_created{engine="0",model_name="org/m"} 1795974115.2695541
# HELP vllm:kv_cache_usage_perc KV-cache usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="org/m"} 0.25 1520879607.789
# TYPE vllm:cache_config info
vllm:cache_config_info{block_size="16",engine="0"} 1
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf"} 2 # {} 35
vllm:iteration_tokens_total_count{engine="0"} 2
vllm:iteration_tokens_total_sum{engine="0"} 70
vllm:iteration_tokens_total_created{engine="0"} 1.5e+09
# TYPE python_gc_objects_collected counter
python_gc_objects_collected_total{generation="0"} 14857
# EOF
"""
WANTED = (
    "vllm:prefix_cache_hits",
    "vllm:kv_cache_usage_perc",
    "vllm:cache_config_info",
    "vllm:iteration_tokens_total",
    "vllm:absent",
)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (TEXT_PAGE, TEXT),
        (TEXT_PAGE, None),
        (OPENMETRICS_PAGE, OPENMETRICS),
        (OPENMETRICS_PAGE, "Application/OpenMetrics-Text;version=1.0.0"),
        (OPENMETRICS_PAGE, TEXT),  # the header lies
        (OPENMETRICS_PAGE.removesuffix("\n"), None),
    ],
)
def test_both_dialects_say_the_same(body, content_type):
    page = read(body, *WANTED, content_type=content_type)

    assert {name: (family.help, values(page, name)) for name, family in page.families.items()} == {
        "vllm:prefix_cache_hits": (
            "Prefix cache hits, in terms of number of cached tokens.",
            {("vllm:prefix_cache_hits_total", "0", "org/m"): 3072.0},
        ),
        "vllm:kv_cache_usage_perc": ("KV-cache usage.", {("vllm:kv_cache_usage_perc", "0", "org/m"): 0.25}),
        "vllm:cache_config_info": ("", {("vllm:cache_config_info", "16", "0"): 1.0}),
        "vllm:iteration_tokens_total": (
            "",
            {
                ("vllm:iteration_tokens_total_bucket", "0", "+Inf"): 2.0,
                ("vllm:iteration_tokens_total_count", "0"): 2.0,
                ("vllm:iteration_tokens_total_sum", "0"): 70.0,
            },
        ),
    }
    assert page.names == {*WANTED[:4], "python_gc_objects_collected"}
    assert page.families["vllm:prefix_cache_hits"].type == "counter"
    assert page.families["vllm:iteration_tokens_total"].type == "histogram"


@pytest.mark.parametrize(("body", "content_type"), [(TEXT_PAGE, TEXT), (OPENMETRICS_PAGE, OPENMETRICS)])
def test_created_is_a_start_time_and_never_a_value(body, content_type):
    page = read(body, *WANTED, content_type=content_type)

    assert page.families["vllm:prefix_cache_hits"].created == {
        (("engine", "0"), ("model_name", "org/m")): 1795974115.2695541
    }
    assert page.families["vllm:iteration_tokens_total"].created == {(("engine", "0"),): 1.5e9}
    without = read_page(body.encode(), content_type, WANTED, created=False)
    assert not without.families["vllm:prefix_cache_hits"].created


def test_a_family_that_is_itself_called_created_can_be_asked_for():
    page = read("# TYPE x_created gauge\nx_created 5\n", "x_created")
    assert values(page, "x_created") == {("x_created",): 5.0}


def test_without_declarations_the_names_tell():
    page = read(
        'vllm:prompt_tokens_total{engine="0"} 27285\n'
        'vllm:x_bucket{le="+Inf"} 2\nvllm:x_sum 3\nvllm:x_count 2\nvllm:y_sum 4\n',
        "vllm:prompt_tokens",
        "vllm:x",
    )
    assert values(page, "vllm:prompt_tokens") == {("vllm:prompt_tokens_total", "0"): 27285.0}
    assert [sample.name for sample in page.families["vllm:x"].samples] == [
        "vllm:x_bucket",
        "vllm:x_sum",
        "vllm:x_count",
    ]
    assert page.families["vllm:x"].type == "unknown"
    assert page.names == {"vllm:prompt_tokens", "vllm:x", "vllm:y_sum"}


def test_names_that_only_resemble_a_wanted_one_stay_out():
    page = read(
        "# TYPE vllm:x gauge\nvllm:x 1\n# TYPE vllm:x_count gauge\nvllm:x_count 2\n"
        "# TYPE vllm:xy gauge\nvllm:xy 3\nray_vllm:x 4\n",
        "vllm:x",
    )
    assert values(page, "vllm:x") == {("vllm:x",): 1.0}


def test_counters_declared_by_their_base_name_in_text():
    page = read("# TYPE a counter\na_total 3\n# TYPE b counter\nb 4\n", "a", "b")
    assert page.families["a"].samples == (Sample("a_total", {}, 3.0),)
    assert page.families["b"].samples == (Sample("b_total", {}, 4.0),)


def test_declared_without_samples_is_on_the_page():
    page = read("# HELP b_total Bees.\n# TYPE a histogram\n", "a", "b")
    assert (page.families["a"].type, page.families["a"].samples) == ("histogram", ())
    assert page.families["b"].help == "Bees."
    assert page.names == {"a", "b"}


def test_labels_are_as_they_stand_also_where_they_say_nothing():
    reader = PageReader(["a"])
    for text, labels in (('a{x=""} 1\n', {"x": ""}), ("a 1\n", {}), ('a{x=""} 1\n', {"x": ""})):
        assert reader.read(text.encode(), TEXT).families["a"].samples[0].labels == labels


def test_a_help_alone_does_not_say_what_a_family_is_made_of():
    page = read('# HELP h Heights.\nh_bucket{le="+Inf"} 2\nh_sum 1\nh_count 2\nh_max 3\n', "h")
    assert [sample.name for sample in page.families["h"].samples] == ["h_bucket", "h_sum", "h_count"]


def test_every_help_of_a_family_is_heard():
    helps = ("Tokens.", "Blocks,\\nwhole.", "Tokens.")
    body = "".join(f"# HELP a_total {text}\n" for text in helps)
    assert read(f"# TYPE a_total counter\n{body}a_total 1\n", "a").families["a"].help == "Tokens.\nBlocks, whole."


def test_interleaved_and_repeated_families_are_one():
    page = read(
        "# TYPE test_a counter\n"
        'test_a{x="1"} 0 0\ntest_b {x="1"} 0 0\n'
        'test_a{x="2"} 0 0\ntest_b {x="2"} 0 0\n'
        '# TYPE test_a counter\ntest_a{x="3"} 7\n',
        "test_a",
        "test_b",
    )
    assert values(page, "test_a") == {("test_a_total", "1"): 0, ("test_a_total", "2"): 0, ("test_a_total", "3"): 7}
    assert values(page, "test_b") == {("test_b", "1"): 0, ("test_b", "2"): 0}


def test_engines_and_processes_stay_apart():
    page = read(
        'k{engine="0",pid="271"} 0.0\nk{engine="0",pid="272"} 0.653\nk{engine="1",pid="271"} 0.1\n',
        "k",
    )
    assert [(dict(sample.labels), sample.value) for sample in page.families["k"].samples] == [
        ({"engine": "0", "pid": "271"}, 0.0),
        ({"engine": "0", "pid": "272"}, 0.653),
        ({"engine": "1", "pid": "271"}, 0.1),
    ]


def test_every_form_a_line_may_have():
    page = read(
        "\n"
        "# a comment\n"
        "  # TYPE a gauge\n"
        r'a{path="C:\\DIR\n",quote="\"}\" 9"} +Inf'
        "\n"
        'a{x="{,}",} -Inf\n'
        'a { x = "1" } NaN 1700000000000\n'
        'a{x="2"} 1e+04\n'
        'a{x="3"}\t1_0\n'.replace("1_0", "10")
        + "a{} .5\r\n"
        '{"a.b",x="é"} 2\n'
        '# TYPE "a.b" gauge\n'
        'h_bucket{le="1"} 3 # {trace_id="abc"} 0.5 1700000000.1\n',
        "a",
        "a.b",
        "h",
    )
    found = [(tuple(sample.labels.items()), sample.value) for sample in page.families["a"].samples]
    assert found[:2] == [((("path", "C:\\DIR\n"), ("quote", '"}" 9')), math.inf), ((("x", "{,}"),), -math.inf)]
    assert math.isnan(found[2][1])
    assert found[3:] == [((("x", "2"),), 1e4), ((("x", "3"),), 10.0), ((), 0.5)]
    assert page.families["a.b"].samples == (Sample("a.b", {"x": "é"}, 2.0),)
    assert page.families["a.b"].type == "gauge"
    assert page.families["h"].samples == (Sample("h_bucket", {"le": "1"}, 3.0),)


def test_quoted_names_are_unescaped_in_metadata():
    page = read('# HELP "a\\"b\\\\c\\nd\\e" Help.\n{"a\\"b\\\\c\\nd\\e"} 1\n', 'a"b\\c\nd\\e')
    assert page.families['a"b\\c\nd\\e'].help == "Help."


@pytest.mark.parametrize("repeat", range(2))
def test_a_second_page_is_read_as_the_first(repeat):
    reader = PageReader(["a", "b"])
    first = reader.read(b'# TYPE a counter\na_total{x="1"} 1\nc 5\n', TEXT)
    second = reader.read(b'# TYPE a counter\na_total{x="1"} 2.5\nc 6\nb{x="\\n"} 1 5\n', TEXT)
    assert first.families["a"].samples[0].value == 1
    assert values(second, "a") == {("a_total", "1"): 2.5}
    assert second.families["a"].samples[0].labels is first.families["a"].samples[0].labels
    assert values(second, "b") == {("b", "\n"): 1.0}
    third = reader.read(b'# TYPE a gauge\na_total{x="1"} 2.5\n', TEXT)
    assert third.families["a"].samples == ()


@pytest.mark.parametrize("digits", ["1_0", "1 ", "", "\t1\t", "0x10", "one", "1 2 x"])
def test_what_is_no_number_is_refused_at_every_poll_alike(digits):
    reader = PageReader(["a"])
    for _ in range(2):
        reader.read(b"a 5\nb 6\n", TEXT)
        for name in ("a", "b"):
            body = f"{name} {digits}\n".encode()
            if digits.strip() == "1":  # white space around a number is fine in text, not in openmetrics
                assert reader.read(body, TEXT).names == {name}
            else:
                with pytest.raises(PageError, match="malformed: line 1: "):
                    reader.read(body, TEXT)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "empty: no text"),
        (" \n\n", "empty: no text"),
        ("# nothing\n", "empty: no families"),
        ("# EOF\n", "empty: no families"),
        ("a 1\nb 30", "truncated: the last line has no end"),
        ('{"detail":"Not Found"}', "malformed: begins like JSON or HTML"),
        ("<html>\n<body></body></html>", "malformed: begins like JSON or HTML"),
        (
            "<html><body>Not Found</body></html>\n",
            "malformed: line 1: invalid metric name:<html><body>Not Found</body></html>",
        ),
        ('{"detail":"Not Found"}\n', 'malformed: line 1: Invalid labels: "detail":"Not Found"'),
        ("a 1\nb{x=1} 2\n", "malformed: line 2: Invalid labels: x=1"),
        ("# TYPE b\na 1\n", "malformed: line 1: not a sample"),
        ("# TYPE b foo\na 1\n", "malformed: line 1: Invalid metric type: foo"),
        (
            "# TYPE a counter\n# TYPE a_total gauge\n# TYPE a gauge\na 1\n",
            "malformed: a is declared as counter and as gauge",
        ),
        (
            "# TYPE a_total counter\na_total 1\n# TYPE a_total gauge\n",
            "malformed: a_total is declared as counter and as gauge",
        ),
        (
            "# TYPE a_total gauge\na_total 1\n# TYPE a_total counter\n",
            "malformed: a is declared as gauge and as counter",
        ),
        ('a{x="1",y="2"} 1\na{y="2",x="1"} 1\n', "duplicate: a x='1' y='2' stands twice"),
        ('a{x=""} 1\na 2\n', "duplicate: a stands twice"),
        ("a 1 10\na 2 20\n", "duplicate: a stands twice"),
        ("# TYPE a counter\na 1\na_total 1\n", "duplicate: a and a_total are one counter"),
    ],
)
def test_what_is_not_one_whole_unambiguous_page_is_refused(body, message):
    assert refusal(body, "a") == message


def test_bytes_that_are_not_text_are_refused():
    assert refusal(b'a{x="\xff"} 1\n', "a") == "encoding: byte 5 is not utf-8"


def test_doubles_of_families_that_nobody_asked_for_do_no_harm():
    assert read("a 1\nb 1\nb 1\n# TYPE b gauge\n# TYPE b counter\n", "a").names == {"a", "b"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a 1\n", "truncated: no # EOF at the end"),
        ("a 1\n# EOF\na 2\n", "truncated: no # EOF at the end"),
        ("# EOF\na 1\n# EOF\n", "malformed: line 2: text after # EOF"),
        ("a 1\n\n# EOF\n", "malformed: line 2: blank"),
        ("a  1\n# EOF\n", "malformed: "),
        ("a 1 \n# EOF\n", "malformed: "),
        ('a{b="1"}23\n# EOF\n', "malformed: a line that can be read in two ways"),
        ("# TYPE a untyped\na 1\n# EOF\n", "malformed: Invalid TYPE for metric: # TYPE a untyped"),
        ("# TYPE a counter\na 1\n# EOF\n", "malformed: Clashing name: a"),
        ("# TYPE a counter\na_total -1\n# EOF\n", "malformed: Counter-like samples cannot be negative: a_total -1"),
        ("# TYPE a histogram\na_bucket 1\n# EOF\n", "malformed: Invalid le label: a_bucket 1"),
        ("# TYPE a summary\na 1\n# EOF\n", "malformed: Invalid quantile label: a 1"),
        ('# TYPE a stateset\na{b="1"} 1\n# EOF\n', 'malformed: Stateset missing label: a{b="1"} 1'),
    ],
)
def test_openmetrics_is_held_to_its_rules(body, message):
    assert refusal(body, "a", content_type=OPENMETRICS).startswith(message)


HISTOGRAM = """\
# TYPE a histogram
a_bucket{{le="1.0"}} {}
a_bucket{{le="+Inf"}} {}
a_count {}
a_sum {}
# TYPE b counter
b_total {}
# TYPE c info
c_info {}
# EOF
"""


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("2 3 3 5 7 1", None),
        ("3 3 3 NaN 7 1", "Counter-like samples cannot be NaN"),
        ("3 3 3 -1 7 1", "Counter-like samples cannot be negative"),
        ("4 3 3 5 7 1", "Bucket values out of order"),
        ("2 3 4 5 7 1", "Count does not match +Inf value"),
        ("2.5 3 3 5 7 1", "Bucket value must be an integer"),
        ("2 3 3.5 5 7 1", "Count value must be an integer"),
        ("2 3 3 5 -7 1", "Counter-like samples cannot be negative"),
        ("2 3 3 5 NaN 1", "Counter-like samples cannot be NaN"),
        ("2 3 3 5 7 2", "Info samples can only have value one"),
    ],
)
def test_values_are_held_to_the_rules_on_a_page_that_is_known(numbers, message):
    reader = PageReader(["a", "b", "c_info"])
    reader.read(HISTOGRAM.format(1, 2, 2, 3, 4, 1).encode(), OPENMETRICS)
    body = HISTOGRAM.format(*numbers.split()).encode()
    if message is None:
        assert reader.read(body, OPENMETRICS).families["a"].samples[0].value == 2
        return
    with pytest.raises(PageError) as caught:
        reader.read(body, OPENMETRICS)
    assert caught.value.detail.startswith(message)


def test_states_are_held_to_the_rules_at_every_poll():
    reader = PageReader(["s"])
    good = b'# TYPE s stateset\ns{s="on"} 1\n# EOF\n'
    for _ in range(2):
        assert reader.read(good, OPENMETRICS).families["s"].samples[0].value == 1
    with pytest.raises(PageError, match="zero and one"):
        reader.read(good.replace(b" 1", b" 2"), OPENMETRICS)


def test_only_values_move_and_all_of_them_are_looked_at():
    reader = PageReader(["a"])
    reader.read(b"a 1\nb 1\n# note\n", TEXT)
    assert reader.read(b"a 1\nb 2\n# note\n", TEXT).families["a"].samples == (Sample("a", {}, 1.0),)
    assert reader.read(b"a 2\nb 2\n# note\n", TEXT).families["a"].samples == (Sample("a", {}, 2.0),)
    with pytest.raises(PageError, match="malformed: line 2"):
        reader.read(b"a 2\nb two\n# note\n", TEXT)
    with pytest.raises(PageError, match="malformed: line 1"):
        reader.read(b"a two\nb 2\n# note\n", TEXT)
    assert reader.read(b"a 3\nb 2\n# other\n", TEXT).families["a"].samples == (Sample("a", {}, 3.0),)


def test_units_are_read_over():
    page = read("# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1\n# EOF\n", "a_seconds")
    assert values(page, "a_seconds") == {("a_seconds",): 1.0}


def test_slips_of_the_openmetrics_parser_are_refusals(monkeypatch):
    def slip(_):
        raise KeyError("le")

    monkeypatch.setattr("prefix_cache_exporter.engine.openmetrics.text_string_to_metric_families", slip)
    assert refusal("a 1\n# EOF\n", "a") == "malformed: KeyError in the parser"


def test_series_that_change_at_every_poll_are_not_kept_for_ever():
    reader = PageReader(["a"])
    for start in range(0, 12_000, 1_000):
        body = "".join(f'a{{x="{number}"}} 1\n' for number in range(start, start + 1_000)).encode()
        assert len(reader.read(body, TEXT).families["a"].samples) == 1_000
    assert len(reader._scanner._memory._series) <= 5_000


def test_threads_may_share_a_reader():
    reader = PageReader(["a"])
    wrong: list[float] = []

    def poll(number: int) -> None:
        body = f'# TYPE a counter\na_total{{x="{number}"}} {number}\n# EOF\n'.encode()
        for _ in range(50):
            [sample] = reader.read(body, OPENMETRICS).families["a"].samples
            if sample != Sample("a_total", {"x": str(number)}, float(number)):
                wrong.append(number)

    threads = [threading.Thread(target=poll, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_gauge_that_repeats_a_counter_is_left_out():
    """Ray exports every counter twice: https://github.com/ray-project/ray/pull/43795."""
    body = b"""\
# HELP ray_vllm_prompt_tokens (DEPRECATED, use ray_vllm_prompt_tokens_total metric instead)
# TYPE ray_vllm_prompt_tokens gauge
ray_vllm_prompt_tokens{WorkerId="a"} 5.0
# HELP ray_vllm_prompt_tokens_total Tokens.
# TYPE ray_vllm_prompt_tokens_total counter
ray_vllm_prompt_tokens_total{WorkerId="a"} 5.0
"""
    page = read_page(body, None, {"ray_vllm_prompt_tokens"})
    family = page.families["ray_vllm_prompt_tokens"]
    assert (family.type, len(family.samples), family.samples[0].name) == ("counter", 1, "ray_vllm_prompt_tokens_total")
    assert family.help == "Tokens."
    assert page.names == {"ray_vllm_prompt_tokens"}
