from __future__ import annotations

import logging
import re

import pytest

from prefix_cache_exporter.engine.poller import CURSOR
from prefix_cache_exporter.state import Store
from support.engine_source import TEXT, Bench, expected, recorded, release
from support.vllm_pages import vllm_page

RUN = "0.32.0"
RUNS = ("0.12.0", "0.28.0", "0.32.0")
START, COLD, SAME = "00_start", "01_cold", "02_same"


def pages(*steps):
    return [recorded(RUN)[step] for step in steps]


def with_start(page: bytes, moment: float) -> bytes:
    """The page of a process that started at a moment."""
    lines = [
        f"process_start_time_seconds {moment}".encode() if line.startswith(b"process_start_time_seconds ") else line
        for line in page.split(b"\n")
    ]
    return b"\n".join(lines)


@pytest.mark.parametrize("run", [*RUNS, *(f"{version}-preempt" for version in RUNS), "0.32.0-block32-chunked"])
def test_the_counters_of_a_recorded_run(run):
    """Every measure that the recording states, step by step: the increases that vLLM's own responses account for."""
    bench = Bench()
    bench.says = run.partition("-")[0]
    steps = recorded(run)
    bench.poll(steps[START])
    before: dict[str, float] = {}
    for step, increases in expected(run).items():
        bench.poll(steps[step])
        for measure, increase in increases.items():
            total = bench.total(measure) or 0.0
            if increase is not None:
                assert total - before.get(measure, 0.0) == increase, (step, measure)
            before[measure] = total


def test_the_first_page_is_where_counting_begins():
    bench = Bench()
    [cold, same] = pages(COLD, SAME)
    assert bench.poll(cold) is None
    assert bench.shown("prompt_tokens_total") == {}
    bench.poll(same)
    assert bench.shown("prompt_tokens_total") == {"engine=0,model=tiny,provider=vllm,template=,template_revision=": 474}
    assert bench.shown(
        "cached_prompt_tokens_total", model="tiny", provider="vllm", template="", template_revision=""
    ) == {"engine=0": 384}


def test_an_engine_that_started_under_our_eyes_is_counted_from_its_start():
    bench = Bench()
    bench.poll("refused")
    bench.poll(with_start(recorded(RUN)[SAME], bench.clock.now))
    assert (bench.total("prompt_tokens"), bench.total("cached_prompt_tokens")) == (948, 384)


@pytest.mark.parametrize("why", ["away but older than we are", "young by its clock but never away"])
def test_an_engine_that_may_have_counted_before_us_is_not(why):
    bench = Bench()
    if "never" not in why:
        bench.poll("refused")
    started = bench.clock.now - 60 if "older" in why else bench.clock.now
    bench.poll(with_start(recorded(RUN)[COLD], started))
    assert bench.total("prompt_tokens") is None


@pytest.mark.parametrize(
    ("seen", "total"),
    [
        ([100, 200, "refused", 150, 170], 100 + 170),
        ([100, 200, "refused", 20, 500, 600], 100 + 600),
        ([100, 300, "refused", 400, 500], 400),
        ([100, 300, "timeout", 200, 400, 500], 400),
    ],
)
def test_a_fall_after_nobody_answered_is_a_restart(seen, total):
    """Several server processes show no start time: without an absence a fall to 150 of 200 is an older page."""
    bench = Bench()
    for each in seen:
        bench.poll(each if isinstance(each, str) else vllm_page(RUN, {"prompt_tokens": each}, started=None))
    assert bench.total("prompt_tokens") == total


def test_the_same_process_has_not_restarted_whoever_answered():
    bench = Bench()
    for each in (100, 300, "refused", 200, 400, 500):
        bench.poll(each if isinstance(each, str) else vllm_page(RUN, {"prompt_tokens": each}))
    assert bench.total("prompt_tokens") == 400


def test_increases_belong_to_the_release_at_both_ends():
    bench = Bench()
    [cold, same, third, early] = pages(COLD, SAME, "03_same_prefix_new_user", "04_early_change")
    bench.in_force = release("r1")
    bench.poll(cold)
    bench.poll(same)
    bench.in_force = release("r2")
    bench.poll(third)
    bench.poll(early)
    shown = bench.shown("prompt_tokens_total", engine="0", model="tiny", provider="vllm", template="support")
    assert shown == {"template_revision=r1": 474, "template_revision=mixed": 479, "template_revision=r2": 475}


@pytest.mark.parametrize(
    "between", [START, b"node_load1 5\n", b"<html></html>", "http_status", b"# TYPE vllm:prompt_tokens gauge\nx 1\n"]
)
@pytest.mark.parametrize("run", RUNS)
def test_what_comes_between_two_pages_takes_nothing_away(run, between):
    """An older page out of a cache, the page of another program, an error: the pages around it are still 953 apart."""
    bench, steps = Bench(), recorded(run)
    bench.says = run
    bench.poll(steps[COLD])
    bench.poll(steps[between] if between == START else between)
    bench.poll(steps["03_same_prefix_new_user"])
    assert (bench.total("prompt_tokens"), bench.total("cached_prompt_tokens")) == (474 + 479, 384 + 384)
    assert bench.total("excluded_prompt_tokens") is None


@pytest.mark.parametrize("between", [START, b"node_load1 5\n"])
def test_what_is_counted_late_belongs_to_all_releases_since(between):
    bench = Bench()
    [cold, same, early] = pages(COLD, SAME, "04_early_change")
    bench.in_force = release("r1")
    bench.poll(cold)
    bench.in_force = release("r2")
    bench.poll(recorded(RUN)[START] if between == START else between)
    bench.poll(same)
    bench.poll(early)
    shown = bench.shown("prompt_tokens_total", engine="0", model="tiny", provider="vllm", template="support")
    assert shown == {"template_revision=mixed": 474, "template_revision=r2": 479 + 475}


def test_a_restart_of_the_exporter_goes_on_where_it_was(tmp_path):
    [cold, same, third] = pages(COLD, SAME, "03_same_prefix_new_user")
    first = Bench(Store(tmp_path / "state.db"))
    first.in_force = release("r1")
    first.poll(cold)
    first.recorder.close()

    second = Bench(Store(tmp_path / "state.db"))
    second.in_force = release("r1")
    second.poll(same)
    assert second.shown("prompt_tokens_total", template_revision="r1") != {}
    assert second.total("prompt_tokens") == 474
    second.recorder.close()

    third_life = Bench(Store(tmp_path / "state.db"))
    third_life.in_force = release("r2")
    third_life.poll(third)
    assert third_life.total("prompt_tokens", template_revision="mixed") == 479
    assert third_life.total("prompt_tokens") == 474 + 479
    third_life.recorder.close()


@pytest.mark.parametrize(
    "payload", [b"", b"{}", b'{"release":null,"snapshot":{"format":99}}', b'{"release":{},"snapshot":{}}']
)
def test_a_position_of_another_format_is_left_aside(payload, caplog):
    store = Store(None)
    bench = Bench(store)
    bench.recorder._pending[CURSOR, "vllm"] = payload
    bench.recorder._ledger.dirt.series.clear()
    bench.recorder.commit()
    bench.poller.__init__(bench.source, bench.recorder, bench, bench.poller._maps, fetcher=bench, clock=bench.clock)
    assert "a stored position cannot be read" in caplog.text
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.poll(same)
    assert bench.total("prompt_tokens") == 474


def test_an_idle_engine_writes_nothing():
    bench = Bench()
    [page] = pages(COLD)
    bench.poll(page)
    bench.poll(page)
    before = bench.recorder.cursors(CURSOR)
    bench.recorder._pending.clear()
    bench.poll(page)
    assert bench.recorder._pending == {}
    assert bench.recorder.cursors(CURSOR) == before


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("refused", "refused"),
        ("timeout", "timeout"),
        ("http_status", "http_status"),
        (b"\n", "empty"),
        (b"# HELP a b", "truncated"),
        (b"<html>502 Bad Gateway</html>\n", "malformed"),
        (b"\xff\xfe\n", "encoding"),
    ],
)
def test_a_failed_poll_is_a_level_and_a_reason_and_counters_stand(page, reason):
    bench = Bench()
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.poll(same)
    assert bench.poll(page) == reason
    assert bench.shown("up") == {"": 0}
    assert bench.shown("poll_errors_total") == {f"reason={reason}": 1}
    assert bench.total("prompt_tokens") == 474
    assert bench.shown("polls_total") == {"": 3}
    assert bench.shown("running_requests") == {"engine=0,model=tiny,provider=vllm": 0}


def test_levels_are_withdrawn_when_they_are_stale_and_counters_are_not():
    bench = Bench(stale_seconds=12)
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.poll(same)
    succeeded = bench.shown("last_success_timestamp_seconds")
    for _ in range(2):
        bench.poll("timeout")
    assert bench.shown("info") != {}
    bench.poll("timeout")
    for name in ("info", "running_requests", "block_size_tokens", "map_state", "caveat", "withheld"):
        assert bench.shown(name) == {}, name
    assert bench.total("prompt_tokens") == 474
    assert bench.shown("last_success_timestamp_seconds") == succeeded
    bench.poll(same)
    assert bench.shown("up") == {"": 1}
    assert bench.shown("running_requests") != {}


def test_what_the_page_says_of_the_engine():
    bench = Bench()
    bench.poll(pages(COLD)[0])
    assert bench.shown("up") == {"": 1}
    assert bench.shown("poll_duration_seconds") == {"": 0}
    assert bench.shown("last_success_timestamp_seconds") == {"": bench.clock.now}
    assert bench.shown("map_state") == {
        "state=verified": 1,
        "state=unverified": 0,
        "state=mismatch": 0,
        "state=unknown": 0,
    }
    [info] = bench.shown("info", engine="0", model="tiny", provider="vllm", engine_version=RUN)
    assert "prefix_caching=on" in info
    assert bench.shown("block_size_tokens", model="tiny", provider="vllm") == {"engine=0": 128}
    assert bench.shown("polls_total") == {"": 1}
    assert bench.shown("restarts_total") == {"": 0}


def test_the_version_is_asked_for_once_a_minute_and_after_every_failure():
    bench = Bench()
    [page] = pages(COLD)
    for _ in range(3):
        bench.poll(page)
    assert bench.asked == ["/metrics", "/version", "/metrics", "/metrics"]
    bench.poll("timeout")
    bench.poll(page)
    assert bench.asked[4:] == ["/metrics", "/metrics", "/version"]
    for _ in range(12):
        bench.poll(page)
    assert bench.asked[7:].count("/version") == 1


def test_a_server_that_has_answered_once_is_believed_while_it_stays():
    bench = Bench()
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.says = ""
    bench.monotonic.advance(120)
    bench.poll(same)
    assert bench.total("prompt_tokens") == 474


def test_a_restart_without_a_failed_poll_may_be_of_another_version():
    """The old map would read the new page; so the version is asked for before anything of it counts."""
    bench = Bench()
    old, new = recorded("0.12.0"), recorded(RUN)
    bench.says = "0.12.0"
    bench.poll(old[COLD])
    bench.says = RUN
    bench.poll(with_start(new[COLD], 1_796_000_000.0))
    assert bench.shown("map_state", state="verified") == {"": 1}
    assert bench.shown("restarts_total") == {"": 1}
    assert bench.total("prompt_tokens") == 474


@pytest.mark.parametrize(
    ("started", "total", "cached", "restarts"),
    [
        (b"process_start_time_seconds 1796000000", 948, 384, 1),
        (b"process_start_time_seconds 1790000000", None, None, 0),  # so it was there before
        (b"", 948, 384, 1),  # its counters were made since
    ],
)
def test_a_replacement_under_another_name_may_be_of_another_version(started, total, cached, restarts):
    """As in a roll-back behind one address. What the maps count from is another family, and all of it is new."""
    bench = Bench()
    bench.poll(recorded(RUN)[COLD])
    bench.says = "0.12.0"
    page = re.sub(rb"\nprocess_start_time_seconds .*", b"\n" + started, recorded("0.12.0")[SAME])
    bench.poll(page.replace(b'model_name="tiny"', b'model_name="next"'))
    assert bench.shown("info", model="next", engine_version="0.12.0") != {}
    assert bench.shown("map_state", state="verified") == {"": 1}
    assert bench.shown("restarts_total") == {"": restarts}
    assert (bench.total("prompt_tokens"), bench.total("cached_prompt_tokens")) == (total, cached)


@pytest.mark.parametrize("started", [1_796_000_000.0, 1_795_974_075.72, 1_790_000_000.0])
def test_whenever_other_labels_take_the_place_the_version_is_asked_for(started):
    """Also where the page looks like the last release's."""
    bench = Bench()
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.says = "0.32.1"
    other = with_start(same, started).replace(b'model_name="tiny"', b'model_name="next"')
    bench.poll(re.sub(rb"\n\w+:\w+_created\{.*", b"", other))
    assert bench.shown("info", model="next", engine_version="0.32.1") != {}
    assert bench.shown("map_state", state="unverified") == {"": 1}


@pytest.mark.parametrize(("pinned", "state"), [("0.32.0", "verified"), ("0.32", "verified"), ("0.31.0", "mismatch")])
def test_a_pinned_version_is_held_against_the_servers(pinned, state):
    bench = Bench(engine_version=pinned)
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.poll(same)
    assert bench.shown("map_state", state=state) == {"": 1}
    assert bench.total("prompt_tokens") == (474 if state == "verified" else None)
    if state == "mismatch":
        assert bench.shown("map_mismatches_total") == {"reason=version_mismatch": 2}
        assert set(bench.shown("withheld", measure="prompt_tokens")) == {"reason=version_mismatch"}
        assert bench.shown("up") == {"": 1}


@pytest.mark.parametrize(
    ("says", "state"),
    [
        ("dev", "verified"),  # vLLM's own name for a build without a version file
        ("0.1.dev1+g1a2b3c4", "verified"),  # a build from a checkout without tags
        ("0.1.dev1+g1a2b3c4.d20261129", "verified"),
        ("0.6.6", "mismatch"),  # a release, though an unknown one
        ("0.31.0.dev5+g1a2b3c4", "mismatch"),  # leads to another release
    ],
)
def test_a_build_that_names_no_version_can_be_pinned(says, state):
    bench = Bench(engine_version=RUN)
    bench.says = says
    [cold, same] = pages(COLD, SAME)
    bench.poll(cold)
    bench.poll(same)
    assert bench.shown("map_state", state=state) == {"": 1}
    assert bench.total("prompt_tokens") == (474 if state == "verified" else None)


@pytest.mark.parametrize(("says", "told"), [("dev", "dev"), ("", "not told")])
def test_the_log_says_which_version_no_map_describes(says, told, caplog):
    bench = Bench()
    bench.says = says
    bench.poll(pages(COLD)[0])
    assert [(line.msg, line.fields["version"]) for line in caplog.records] == [("page not as its map says", told)]


def test_a_pinned_version_serves_where_the_server_does_not_tell():
    bench = Bench(engine_version=RUN)
    bench.says = ""
    for page in pages(COLD, SAME):
        bench.poll(page)
    assert bench.total("prompt_tokens") == 474


def test_versions_that_nobody_can_read_are_compared_as_they_stand():
    bench = Bench(engine_version="0.32.0.custom!")
    bench.says = "0.32.0.custom!"
    bench.poll(pages(COLD)[0])
    assert bench.shown("map_state", state="unknown") == {"": 1}


@pytest.mark.parametrize("says", ["", "0.0.1", "banana"])
def test_an_unknown_version_yields_no_number(says):
    bench = Bench()
    bench.says = says
    for page in pages(COLD, SAME):
        bench.poll(page)
    assert bench.shown("map_state", state="unknown") == {"": 1}
    assert bench.total("prompt_tokens") is None
    assert bench.shown("info") == {}
    assert set(bench.shown("withheld", measure="prompt_tokens")) == {"reason=unknown_version"}
    assert bench.poll(b"<html>\n") == "malformed"


def test_nothing_is_lost_while_the_version_is_unknown():
    bench = Bench()
    [cold, same, third] = pages(COLD, SAME, "03_same_prefix_new_user")
    bench.poll(cold)
    bench.poll("timeout")
    bench.says = ""
    bench.poll(same)
    assert bench.total("prompt_tokens") is None
    bench.says = RUN
    bench.poll(third)
    assert bench.total("prompt_tokens") == 474 + 479


def test_a_page_of_another_release_is_not_trusted():
    bench = Bench()
    old = recorded("0.12.0")
    for step in (COLD, SAME):
        bench.poll(old[step])
    assert bench.shown("map_state", state="mismatch") == {"": 1}
    assert bench.total("prompt_tokens") is None
    assert bench.total("map_mismatches") >= 2
    assert {name.partition("=")[2] for name in bench.shown("map_mismatches_total")} <= {
        "missing",
        "unexpected",
        "type",
        "help",
    }


def test_a_name_style_that_the_version_does_not_have():
    bench = Bench(name_style="nobodys")
    bench.poll(pages(COLD)[0])
    assert bench.shown("map_state", state="unknown") == {"": 1}
    assert set(bench.shown("withheld", measure="prompt_tokens")) == {"reason=unknown_name_style"}


def test_aliases_of_models_become_one_name():
    bench = Bench(models={"tiny": "tiny-random-llama", "other": "x"})
    for page in pages(COLD, SAME):
        bench.poll(page)
    assert bench.total("prompt_tokens", model="tiny-random-llama") == 474
    assert bench.shown("unmapped_models") == {"": 0}
    stranger = Bench(models={"other": "x"})
    stranger.poll(pages(COLD)[0])
    assert stranger.shown("unmapped_models") == {"": 1}
    plain = Bench()
    plain.poll(pages(COLD)[0])
    assert plain.shown("unmapped_models") == {}


def test_models_of_one_name_are_one_level():
    """A mean where shares are, a sum where requests are, nothing where they should agree and do not."""
    bench = Bench(models={"m": "llama", "n": "llama"})
    levels = {"num_requests_running": 3, "kv_cache_usage_perc": 0.0, "engine_sleep_state{awake}": 1}
    body = vllm_page("0.32.0", {"prompt_tokens": 10, **levels})
    other = vllm_page("0.32.0", {"prompt_tokens": 20, "num_requests_running": 5, "kv_cache_usage_perc": 0.5}, model="n")
    body += b"".join(line + b"\n" for line in other.splitlines() if b'model_name="n"' in line)
    bench.poll(body)
    assert bench.shown("running_requests", model="llama", provider="vllm") == {"engine=0": 8}
    assert bench.shown("kv_usage_ratio", model="llama", provider="vllm") == {"engine=0": 0.25}
    assert bench.shown("block_size_tokens", model="llama", provider="vllm") == {"engine=0": 16}
    states = bench.shown("sleep_state", model="llama", provider="vllm", engine="0")
    assert states == {"sleep_state=weights_offloaded": 0, "sleep_state=discard_all": 0}
    for lacking in (b"", b'vllm:num_requests_running{model_name="n",engine="0"} NaN'):
        bench.poll(body.replace(b'vllm:num_requests_running{model_name="n",engine="0"} 5.0', lacking))
        assert bench.shown("running_requests") == {}


def test_a_caveat_stays_until_a_scrape_must_have_seen_it():
    bench = Bench(stale_seconds=20)
    bench.says = "0.12.0"
    steps = recorded("0.12.0-preempt")
    names = list(steps)
    for name in names:
        bench.poll(steps[name])
    active = set(bench.shown("caveat"))
    idle = steps[names[-1]]
    for _ in range(3):
        bench.poll(idle)
    assert active <= set(bench.shown("caveat"))


def test_one_line_a_minute_for_each_kind_of_trouble(caplog):
    bench = Bench()
    [page] = pages(COLD)
    with caplog.at_level(logging.INFO):
        for _ in range(6):
            bench.poll("refused")
        bench.poll("timeout")
        bench.poll(page)
        bench.poll("refused")
        bench.poll(page)
        bench.monotonic.advance(60)
        bench.poll("refused")
    lines = [
        (record.getMessage(), record.fields.get("reason"), record.fields["held_back"]) for record in caplog.records
    ]
    assert lines == [
        ("poll failed", "refused", 0),
        ("poll failed", "timeout", 0),
        ("polling again", None, 0),
        ("poll failed", "refused", 6),
    ]


def test_steps():
    bench = Bench(poll_seconds=7)
    assert not bench.poller.caught_up
    assert bench.poller.step(draining=False) == 7
    assert bench.poller.caught_up
    bench.page = "timeout"
    assert bench.poller.step(draining=True) == 1
    [bench.page] = pages(COLD)
    assert bench.poller.step(draining=True) == 1
    bench.page = "refused"
    assert bench.poller.step(draining=True) is None
    bench.poller.close()
    assert bench.asked[-1] == "close"


def test_openmetrics_pages_are_read_as_such():
    bench = Bench()
    assert bench.content_type == TEXT
    bench.content_type = "application/openmetrics-text; version=1.0.0"
    assert bench.poll(b"# TYPE a gauge\na 1\n") == "truncated"
