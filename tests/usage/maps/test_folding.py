from __future__ import annotations

from prefix_cache_exporter.usage.intake import Intake
from support.usage import counts, encode
from support.usage_maps import IN_AN_ENVELOPE, book

OURS = """\
format: shop.llm
usage_from: openai.chat
at: $.response.body
id: $.request_id
time: $.ts
model: $.response.body.model
status:
  rules:
    - {path: $.response.code, at_least: 400, is: failed}
"""


def test_a_known_object_in_an_envelope_takes_ten_lines(tmp_path):
    (record,) = Intake(book(tmp_path, OURS).get("shop.llm")).take([encode(IN_AN_ENVELOPE)], 0.0)
    assert counts(record) == (10, 4, None, 6, 1)
    assert (record.id, record.time, record.model, record.format) == ("r1", 1790000000.5, "gpt-4o", "shop.llm")
    assert len(OURS.splitlines()) <= 10


def test_what_the_map_does_not_say_comes_from_the_known_format_at_its_new_place(tmp_path):
    bare = "format: shop.llm\nusage_from: openai.chat\nat: $.response.body\n"
    (record,) = Intake(book(tmp_path, bare).get("shop.llm")).take([encode(IN_AN_ENVELOPE)], 0.0)
    assert record.id == "chatcmpl-1"
