# ruff: noqa: E501  # each message of the table stands on one line
from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.cli import run
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.usage.inventory import load_inventory, remarks

INVENTORY = """
segments:
- {id: policy, version: 3, owner: trust, scope: everywhere, sharing_group: everyone, expected_update_frequency: monthly, tokens: 600}
- {id: tools, version: a1, owner: platform, scope: support, sharing_group: everyone, expected_update_frequency: weekly, tokens: {gpt-*: 400, claude-*: 424}}
templates:
  support-chat:
    shared_prefix: [policy]
    revisions:
      r41: {shared_prefix: []}
      r42: {shared_prefix: [policy, tools@a1]}
"""


@pytest.fixture
def write(tmp_path):
    def write(text=INVENTORY):
        (tmp_path / "inventory.yaml").write_text(text)
        return tmp_path / "inventory.yaml"

    return write


@pytest.mark.parametrize(
    ("template", "revision", "model", "tokens"),
    [
        ("support-chat", "r42", "gpt-6-sol", 1000),
        ("support-chat", "r42", "anthropic/claude-opus-5", 1024),
        ("support-chat", "r42", "qwen3", None),
        ("support-chat", "r42", None, None),
        ("support-chat", "r41", None, 0),
        ("support-chat", "r40", None, 600),
        ("support-chat", None, None, 600),
        (None, "r42", "gpt-6-sol", 1000),
        (None, None, "gpt-6-sol", None),
        (None, "r40", "gpt-6-sol", None),
        ("other", "r42", "gpt-6-sol", None),
    ],
)
def test_the_length_of_a_shared_prefix(write, template, revision, model, tokens):
    assert load_inventory(write()).tokens(template, revision, model) == tokens


def test_a_revision_that_two_templates_have_does_not_say_which(write):
    text = INVENTORY + "  other: {revisions: {r42: {shared_prefix: [policy]}}}\n"
    assert load_inventory(write(text)).tokens(None, "r42", "gpt-6-sol") is None


FIXTURE = INVENTORY.replace("tokens: 600", "fixture: policy.txt")


def test_fixtures_are_counted_with_the_inventorys_tokenizer(write, tmp_path):
    (tmp_path / "policy.txt").write_text("be kind and brief")
    inventory = load_inventory(
        write("tokenizer: tokenizer.json\n" + FIXTURE),
        counter=lambda path: lambda text: len(text.split()) + len(path.name),
    )
    assert inventory.tokens("support-chat", "r40", None) == 4 + len("tokenizer.json")


def test_fixtures_are_counted_with_the_tokenizers_package(write, tmp_path):
    (tmp_path / "policy.txt").write_text("be kind be brief")
    vocabulary = {"be": 0, "kind": 1, "?": 2}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"}
    tokenizer = {"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}, "added_tokens": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert load_inventory(write("tokenizer: tokenizer.json\n" + FIXTURE)).tokens("support-chat", "r40", None) == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("owner: trust, ", "", "segments[0]: got no owner, expected the key owner"),
        (", tokens: 600", "", "segments[0]: got ANY, expected a segment with tokens or a fixture"),
        ("tokens: 600", "tokens: many", 'segments[0].tokens: got "many", expected a token count, or counts by model pattern'),
        ("tokens: 600", "fixture: gone.txt", "segments[0].fixture: got no such file or directory, expected a readable text file"),
        ("id: tools, version: a1", "id: policy, version: 3", "segments[1]: got policy@3 again, expected each version of a segment once\ntemplates.support-chat.revisions.r42.shared_prefix[1]: got tools@a1, expected one of policy@3"),
        ("tools@a1", "tools@a2", "templates.support-chat.revisions.r42.shared_prefix[1]: got tools@a2, expected one of policy@3, tools@a1"),
        ("id: tools, version: a1", "id: policy, version: 4", ("templates.support-chat.shared_prefix[0]: got policy, expected one version of it, like policy@3\n"
         "templates.support-chat.revisions.r42.shared_prefix[0]: got policy, expected one version of it, like policy@3\n"
         "templates.support-chat.revisions.r42.shared_prefix[1]: got tools@a1, expected one of policy@3, policy@4")),
        ("gpt-*", "/(/", "segments[1].tokens: got /(/ is not a regular expression: missing ), unterminated subpattern at position 0, expected a pattern like gpt-6* or /^gpt-6/"),
        ("segments:", "reuse: [{provider: vllm}]\nsegments:", 'reuse[0]: got {"provider": "vllm"}, expected a provider with either block_size_tokens or minimum_tokens'),
        ("segments:", "reuse: [{provider: x, models: [/(/], minimum_tokens: 1}]\nsegments:", "reuse[0].models: got /(/ is not a regular expression: missing ), unterminated subpattern at position 0, expected a pattern like gpt-6* or /^gpt-6/"),
        # YAML reads 1.10 as the number 1.1, and on as a truth value: no record would ever name such a revision
        ("r42:", "1.10:", "templates.support-chat.revisions: got 1.1, expected a name, in quotes where YAML reads a number or a truth value"),
        ("r42:", "on:", "templates.support-chat.revisions: got true, expected a name, in quotes where YAML reads a number or a truth value"),
        ("support-chat:", "42:", "templates: got 42, expected a name, in quotes where YAML reads a number or a truth value"),
        ("gpt-*", "4", "segments[1].tokens: got ANY, expected a token count, or counts by model pattern"),
        ("id: tools", "id: tools@a", 'segments[1].id: got "tools@a", expected a name without @, behind which versions stand'),
        ("weekly", "often", 'segments[1].expected_update_frequency: got "often", expected one of "never", "yearly", "quarterly", "monthly", "weekly", "daily", "hourly", "per_request"'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_file_place_got_and_expected(write, old, new, message):
    path = write(INVENTORY.replace(old, new))
    with pytest.raises(DocumentError) as caught:
        load_inventory(path)
    said = str(caught.value)
    if "ANY" in message:
        said = said.replace(caught.value.got, "ANY")
    assert said.splitlines() == [f"{path}: {line}" for line in message.splitlines()]


def test_a_fixture_needs_a_tokenizer_that_can_be_read(write, tmp_path):
    (tmp_path / "policy.txt").write_text("x")

    def told(text, counter=None):
        with pytest.raises(DocumentError) as caught:
            load_inventory(write(text), counter=counter)
        return str(caught.value).partition("inventory.yaml: ")[2]

    def absent(_path):
        raise ModuleNotFoundError

    told_without = told(FIXTURE)
    assert told_without == (
        "segments[0]: got a fixture and no tokenizer, expected tokens, or a tokenizer for the inventory"
    )
    assert told("tokenizer: gone.json\n" + FIXTURE).startswith("tokenizer: got ")
    assert told("tokenizer: t.json\n" + FIXTURE, absent) == (
        "segments[0].fixture: got no tokenizers package, expected tokens, or the extra [tokens]"
    )
    (tmp_path / "policy.txt").write_bytes(b"\xff")
    assert told("tokenizer: gone.json\n" + FIXTURE) == (
        "segments[0].fixture: got bytes that are not utf-8, expected a readable text file"
    )


def test_remarks_on_what_costs_reuse(write):
    text = INVENTORY.replace("[policy, tools@a1]", "[tools, policy]").replace(
        "scope: support, sharing_group: everyone", "scope: support, sharing_group: tenant"
    )
    path = write(text)
    assert list(remarks(load_inventory(path))) == [
        f"{path}: support-chat r42: tools@a1 (changes weekly) stands before policy@3, which it invalidates",
        f"{path}: support-chat r42: sharing groups tenant, everyone in one prefix: its reuse is that of the narrowest",
    ]
    assert list(remarks(load_inventory(write()))) == []


def test_check_inventory_lists_the_prefixes(write, capsys):
    path = write(INVENTORY.replace("[policy, tools@a1]", "[tools, policy]"))
    assert run(["check", "inventory", str(path), "--provider", "vllm", "--model", "gpt-oss", "--block-size", "16"]) == 0
    assert capsys.readouterr().out == (
        f"{path}: ok, 3 shared prefixes\n"
        "support-chat (other revisions): 600 tokens, 592 eligible: policy@3\n"
        "support-chat r41: 0 tokens, 0 eligible: nothing shared\n"
        "support-chat r42: 1000 tokens, 992 eligible: tools@a1 + policy@3\n"
        f"note: {path}: support-chat r42: tools@a1 (changes weekly) stands before policy@3, which it invalidates\n"
    )
    assert run(["check", "inventory", str(path), "--provider", "groq"]) == 0
    assert capsys.readouterr().out.splitlines()[1:4] == [
        "support-chat (other revisions): 600 tokens, minimum_unknown eligible: policy@3",
        "support-chat r41: 0 tokens, minimum_unknown eligible: nothing shared",
        "support-chat r42: unknown tokens: tools@a1 + policy@3",
    ]


def test_check_inventory_in_json_and_with_a_mistake(write, capsys):
    path = write()
    assert run(["check", "inventory", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["prefixes"][0] == {
        "template": "support-chat",
        "template_revision": None,
        "segments": ["policy@3"],
        "tokens": 600,
    }
    path = write("segments: []\n")
    assert run(["check", "inventory", str(path)]) == 1
    assert capsys.readouterr().err == f"error: {path}: document: got no templates, expected the key templates\n"
