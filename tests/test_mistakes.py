"""Whoever mends a file is told everything that is wrong with it at once, in the order of the file."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.config.load import load_config
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.pack.settings import load_settings
from prefix_cache_exporter.release import parse_release_file
from prefix_cache_exporter.usage.inventory import load_inventory
from prefix_cache_exporter.usage.maps.book import MapBook
from prefix_cache_exporter.usage.prices.files import load_book


def release(path):
    return parse_release_file(path.read_bytes(), str(path))


def usage_map(path):
    return MapBook([path])


CASES = {
    "a configuration without the right form": (
        load_config,
        "state: {hold_seconds: soon}\nengines: [{nam: vllm}]\nlimits: {series: 0}\n",
        """
state.hold_seconds: got "soon", expected number
engines[0]: got the unknown key nam, expected one of ANY
engines[0]: got no name, expected the key name
engines[0]: got no url, expected the key url
limits.series: got 0, expected at least 1
""",
    ),
    "a configuration that contradicts itself": (
        load_config,
        (
            "usage: [{name: a, format: x, paths: [y], ttft_bands: [2, 1], fields: {task: '$[', tenant: '$.a[*]'}}]\n"
            "engines: [{name: a, url: 'ftp://x', poll_seconds: 90}, {name: a, url: 'http://x', tls: {key_file: k}}]\n"
        ),
        """
usage[0].ttft_bands: got [2, 1], expected rising edges
usage[0].fields.task: got "$[", expected .key, [0] or ['key'] from character 2 on
usage[0].fields.tenant: got "$.a[*]", expected a path to one value, without [*]
engines[0].stale_seconds: got 60, expected at least poll_seconds (90)
engines[0].url: got another address, expected an http:// or https:// address of a host
engines[1].name: got "a", expected another name than engines[0] has
engines[1].tls: got TLS settings for an http:// address, expected an https:// address
engines[1].tls.key_file: got a key without a certificate, expected cert_file beside it
""",
    ),
    "a price book without the right form": (
        load_book,
        """\
provider: house
source: memory
models:
- {id: m, match: [m], prices: [{input: -1, cached: 0.1}]}
- {id: n, match: [n], prices: [{output: 2}]}
""",
        """
document: got no date, expected the key date
source: got "memory", expected an address that begins with https://
models[0].prices[0]: got the unknown key cached, expected one of above, daily, from, input, output, read, to, write
models[0].prices[0].input: got -1, expected a number that is not negative
models[1].prices[0]: got no input, expected the key input
""",
    ),
    "a price book that makes no sense": (
        load_book,
        """\
provider: house
source: https://example.org/prices
date: 2026-13-45
models:
- {id: m, match: ['/(/'], prices: [{from: 2026-02-30, input: 1, above: [{tokens: 9, input: 2}, {tokens: 9, input: 3}]}]}
- {id: n, match: [n], prices: [{from: 2026-12-01, to: 2026-11-01, input: .inf}]}
""",
        """
date: got 2026-13-45, expected a day of the calendar
models[0].match: got /(/ is not a regular expression: ANY, expected a pattern like gpt-6* or /^gpt-6/
models[0].prices[0].from: got 2026-02-30, expected a day of the calendar
models[0].prices[0].above[1].tokens: got 9 again, expected each threshold once
models[1].prices[0]: got from 2026-12-01 to 2026-11-01, expected a first day before the day that ends it
models[1].prices[0].input: got inf, expected a finite number
""",
    ),
    "a price book of too fine prices": (
        load_book,
        """\
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- {id: m, match: [m], prices: [{input: 0.0000000000001, output: 1}]}
- {id: n, match: [n], prices: [{input: 1, output: 0.0000000000002}, {input: 0.0000000000003}]}
""",
        """
models[0]: got input of 0.0000000000000000001 per token, expected at most 18 decimals per token
models[1]: got output of 0.0000000000000000002 per token, expected at most 18 decimals per token
models[1]: got input of 0.0000000000000000003 per token, expected at most 18 decimals per token
""",
    ),
    "an inventory": (
        load_inventory,
        """\
templates:
  chat: {shared_prefix: [policy, tool, gone@2, rules]}
segments:
- &policy {id: policy, version: 1, owner: o, scope: s, sharing_group: g, expected_update_frequency: never, tokens: 5}
- {id: rules, version: 1, owner: o, scope: s, sharing_group: g, expected_update_frequency: never,
   tokens: {'/(/': 5, '/[/': 6, a: 7}}
- *policy
- {id: tools, version: 1, owner: o, scope: s, sharing_group: g, expected_update_frequency: never, fixture: gone.txt}
reuse: [{provider: x, models: [/(/], minimum_tokens: 1}]
""",
        """
templates.chat.shared_prefix[1]: got tool, expected one of policy@1
templates.chat.shared_prefix[2]: got gone@2, expected one of policy@1
segments[1].tokens: got /(/ is not a regular expression: ANY, expected a pattern like gpt-6* or /^gpt-6/
segments[1].tokens: got /[/ is not a regular expression: ANY, expected a pattern like gpt-6* or /^gpt-6/
segments[2]: got policy@1 again, expected each version of a segment once
segments[3].fixture: got no such file or directory, expected a readable text file
reuse[0].models: got /(/ is not a regular expression: ANY, expected a pattern like gpt-6* or /^gpt-6/
""",
    ),
    "releases": (
        release,
        """\
releases:
- {template: a, template_revision: r, in_force: true}
- {template: a, template_revision: r}
- {template: b, template_revision: r, in_force: true}
- {template: b, template_revision: r}
""",
        """
releases: got 2 releases in force, expected one in_force: true at the most
releases[1]: got a/r a second time, expected each revision once
releases[3]: got b/r a second time, expected each revision once
""",
    ),
    "a release without the right form": (
        release,
        "template_revision: 42\npredicted_population_hit_ratio: 46\nrevision: r42\n",
        """
document: got the unknown key revision, expected one of ANY
document: got no template, expected the key template
template_revision: got 42, expected text of 1 to 200 characters (put numbers in quotes)
predicted_population_hit_ratio: got 46, expected at most 1
""",
    ),
    "a pack file": (
        load_settings,
        "thresholds: {warm: 2, cold: 1}\ninterval: 0s\n",
        """
thresholds: got the unknown key cold, expected one of ANY
thresholds.warm: got 2, expected at most 1
interval: got "0s", expected a duration above zero, like 30m or 1h30m
""",
    ),
    "a pack file whose windows are in no order": (
        load_settings,
        "windows: {long: 3m, day: 2m}\nrelease: {memory: 1m}\n",
        """
windows.long: got "3m", expected more than windows.short (5m)
windows.day: got "2m", expected at least floors.baseline_time (30m)
release.memory: got "1m", expected at least release.window (1d)
""",
    ),
    "a usage map": (
        usage_map,
        """\
format: a.b
usage_from: openai.chat
id: [$.a, b]
modle: $.m
skip: [{path: $.a, any_of: [yes], reason: x}, {path: $.b, equals: 1}]
ttft: [{from: $.a}]
title: 5
retry: [{path: $.a}, true]
""",
        """
document: got the unknown key modle, expected one of ANY; did you mean model?
id[1]: got b, expected a path from the record: $.b
skip[0].any_of[0]: got yes, which YAML takes for true, expected 'yes' in quotes, or true
skip[1]: got the unknown key equals, expected one of ANY
ttft[0]: got no to, expected path and unit, or from and to
title: got 5, expected string
retry[0]: got no test, expected one of ANY
retry[1]: got true, expected a condition: a path and a test
""",
    ),
    "a usage map that comes to nothing": (
        usage_map,
        "format: a.b\ntokens: {output: out}\ninherit: [model]\n",
        """
tokens: got no input, expected the key input: where the number of input tokens stands
inherit: got no each beside it, expected each: where the records of a line stand
""",
    ),
}


@pytest.mark.parametrize(("read", "text", "expected"), CASES.values(), ids=CASES)
def test_everything_that_is_wrong_is_told(tmp_path, monkeypatch, read, text, expected):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError) as caught:
        read(path)
    said = str(caught.value).replace(f"{path}: ", "").splitlines()
    for line, wanted in zip(said, expected.split("\n")[1:-1], strict=True):
        front, any_, end = wanted.partition("ANY")
        assert line.startswith(front) if any_ else line == front
        assert line.endswith(end)


def test_every_file_of_a_folder_of_maps_is_told(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(f"format: own.{name}\nusage_from: openai.chat\n{name}: 5\n")
    (tmp_path / "c.yaml").write_text("format: own.c\nusage_from: openai.chat\n")
    with pytest.raises(DocumentError) as caught:
        MapBook([tmp_path])
    assert [line.split(", expected")[0] for line in str(caught.value).splitlines()] == [
        f"{tmp_path}/a.yaml: document: got the unknown key a",
        f"{tmp_path}/b.yaml: document: got the unknown key b",
    ]
