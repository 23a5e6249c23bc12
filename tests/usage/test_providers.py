from __future__ import annotations

import pytest

from prefix_cache_exporter.documents import DocumentError, data_root, load_yaml, read_schema, validate
from prefix_cache_exporter.usage.providers import parse_providers, shipped_providers


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("aws.bedrock", "bedrock"),
        ("Bedrock_Converse", "bedrock"),
        ("gcp.vertex_ai", "google"),
        ("gemini", "google"),
        ("azure.ai.openai", "azure"),
        ("x_ai", "xai"),
        ("mistral_ai", "mistral"),
        ("hosted_vllm", "vllm"),
        ("openai", "openai"),
        ("Somebody", "somebody"),
    ],
)
def test_a_provider_is_known_by_all_its_names(name, canonical):
    assert shipped_providers().canonical(name) == canonical


def test_who_serves_whose_models():
    assert shipped_providers().with_served("vertex_ai") == ("google", "anthropic")
    assert shipped_providers().with_served("somebody") == ("somebody",)


def test_every_price_book_belongs_to_a_provider():
    books = {path.stem for path in (data_root() / "prices").glob("*.yaml")}
    assert books <= shipped_providers().serves.keys()


def test_one_name_cannot_be_two_providers():
    with pytest.raises(DocumentError) as caught:
        parse_providers({"a": {"names": ["x"]}, "b": {"names": ["X"]}}, "providers.yaml")
    assert str(caught.value) == "providers.yaml: providers.b.names: got X, expected a name that is not also a's"


def test_the_shipped_providers_keep_their_schema():
    validate(load_yaml(data_root() / "providers.yaml"), read_schema("providers"), "providers.yaml")
