"""The prefix inventory: which segments the prompts of a template share, and how many tokens they are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, load_yaml, read_schema, validate
from prefix_cache_exporter.mistakes import Mistakes, refuse

from .patterns import compile_patterns, spellings
from .reuse import Rule, override

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Mapping

FREQUENCIES = ("never", "yearly", "quarterly", "monthly", "weekly", "daily", "hourly", "per_request")
"""Expected update frequencies, the most stable first."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of prompt text that requests share.

    Attributes:
        id, version: what templates refer to, as `id@version`.
        owner, scope, sharing_group, frequency: as the inventory says; for people and for `check inventory`.
        counts: (model pattern, tokens) in order; a pattern of None is every model.
        fixture: the text itself, where the inventory names a file.
    """

    id: str
    version: str
    owner: str
    scope: str
    sharing_group: str
    frequency: str
    counts: tuple[tuple[re.Pattern[str] | None, int], ...]
    fixture: str | None

    @property
    def name(self) -> str:
        """`id@version`."""
        return f"{self.id}@{self.version}"

    def tokens(self, model: str | None) -> int | None:
        """The segment's length for a model's tokenizer; None where the inventory does not say."""
        for pattern, count in self.counts:
            if pattern is None or (model and any(map(pattern.search, spellings(model)))):
                return count
        return None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Shared prefixes by template and revision.

    Attributes:
        file: where it was read, for messages.
        prefixes: segments by (template, revision); a revision of None stands for every revision not listed.
        rules: what the inventory itself says about reuse, before the shipped rules.
    """

    file: str
    prefixes: Mapping[tuple[str, str | None], tuple[Segment, ...]]
    rules: tuple[Rule, ...]

    def segments(self, template: str | None, revision: str | None) -> tuple[Segment, ...] | None:
        """The shared prefix of a template revision; None where it is not registered.

        Without a template a revision still counts if only one template has it.
        """
        if template is not None:
            found = self.prefixes.get((template, revision))
            return found if found is not None else self.prefixes.get((template, None))
        named = [prefix for (_, known), prefix in self.prefixes.items() if known == revision and revision is not None]
        return named[0] if len(named) == 1 else None

    def tokens(self, template: str | None, revision: str | None, model: str | None) -> int | None:
        """Length of the shared prefix in tokens of the model; None where it or a part of it is not known."""
        segments = self.segments(template, revision)
        if segments is None:
            return None
        total = 0
        for segment in segments:
            tokens = segment.tokens(model)
            if tokens is None:
                return None
            total += tokens
        return total


def load_inventory(path: Path | str, *, counter: Callable[[Path], Callable[[str], int]] | None = None) -> Inventory:
    """Reads a prefix inventory.

    Args:
        path: the YAML file; fixtures and the tokenizer are looked for beside it.
        counter: makes a token counter from a tokenizer file; the `tokenizers` package unless given.

    Raises:
        DocumentError: for all mistakes, each with file, place, what stood there and what was expected.
    """
    file = str(path)
    document = load_yaml(path)
    validate(document, read_schema("inventory"), file)
    count = _counter(document, Path(path), counter or _tokenizer)
    wrong = Mistakes()
    segments: dict[str, list[Segment]] = {}
    broken = set()
    for number, entry in enumerate(document["segments"]):
        broken.add(entry["id"])
        with wrong:
            segment = _segment(entry, Path(path), f"segments[{number}]", count)
            versions = segments.setdefault(segment.id, [])
            if any(other.version == segment.version for other in versions):
                again = f"{segment.name} again"
                raise DocumentError(file, f"segments[{number}]", again, "each version of a segment once")
            versions.append(segment)
            broken.remove(segment.id)
    prefixes: dict[tuple[str, str | None], list[Segment]] = {}
    for template, entry in document["templates"].items():
        for revision, names, place in _listed(template, entry):
            prefix = prefixes[template, revision] = []
            for number, name in enumerate(names):
                if name.partition("@")[0] not in broken:  # what is wrong with it has been said
                    with wrong:
                        prefix.append(_named(name, segments, file, f"{place}[{number}]"))
    rules = []
    for entry, place in _rules(document):
        with wrong:
            rules.append(override(entry, file, place))
    wrong.refuse(document)
    return Inventory(file, {name: tuple(prefix) for name, prefix in prefixes.items()}, tuple(rules))


def remarks(inventory: Inventory) -> Iterator[str]:
    """What is allowed but costs reuse, one line each: segments that change often in front of stable ones."""
    for (template, revision), segments in inventory.prefixes.items():
        where = f"{inventory.file}: {template} {revision or '(other revisions)'}"
        for before, after in pairwise(segments):
            if FREQUENCIES.index(before.frequency) > FREQUENCIES.index(after.frequency):
                changes = f"changes {before.frequency.replace('_', ' ')}"
                yield f"{where}: {before.name} ({changes}) stands before {after.name}, which it invalidates"
        groups = list(dict.fromkeys(segment.sharing_group for segment in segments))
        if len(groups) > 1:
            yield f"{where}: sharing groups {', '.join(groups)} in one prefix: its reuse is that of the narrowest"


def _listed(template: str, entry: Mapping[str, Any]) -> Iterator[tuple[str | None, list[str], str]]:
    if "shared_prefix" in entry:
        yield None, entry["shared_prefix"], f"templates.{template}.shared_prefix"
    for revision, inner in entry.get("revisions", {}).items():
        yield str(revision), inner["shared_prefix"], f"templates.{template}.revisions.{revision}.shared_prefix"


def _rules(document: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    for number, entry in enumerate(document.get("reuse", ())):
        yield entry, f"reuse[{number}]"


def _named(name: str, segments: Mapping[str, list[Segment]], file: str, place: str) -> Segment:
    id_, _, version = name.partition("@")
    found = [segment for segment in segments.get(id_, ()) if not version or segment.version == version]
    if len(found) == 1:
        return found[0]
    known = ", ".join(segment.name for versions in segments.values() for segment in versions)
    expected = f"one of {known}" if known else "a segment that stands under segments"
    if found:
        expected = f"one version of it, like {found[0].name}"
    raise DocumentError(file, place, name, expected)


def _segment(entry: Mapping[str, Any], path: Path, place: str, count: Callable[[str, str], int] | None) -> Segment:
    text = None
    if "fixture" in entry:
        fixture = path.parent / entry["fixture"]
        try:
            text = fixture.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or "bytes that are not UTF-8"
            raise DocumentError(str(path), f"{place}.fixture", str(problem).lower(), "a readable text file") from error
    tokens = entry.get("tokens")
    counts: tuple[tuple[re.Pattern[str] | None, int], ...]
    if isinstance(tokens, dict):
        refuse(error for model in tokens for error in _no_pattern(model, str(path), f"{place}.tokens"))
        counts = tuple((compile_patterns([model]), number) for model, number in tokens.items())
    elif tokens is not None:
        counts = ((None, tokens),)
    else:
        if count is None:
            raise DocumentError(
                str(path), place, "a fixture and no tokenizer", "tokens, or a tokenizer for the inventory"
            )
        counts = ((None, count(text or "", f"{place}.fixture")),)
    return Segment(
        entry["id"],
        str(entry["version"]),
        entry["owner"],
        entry["scope"],
        entry["sharing_group"],
        entry["expected_update_frequency"],
        counts,
        text,
    )


def _no_pattern(model: str, file: str, place: str) -> Iterator[DocumentError]:
    try:
        compile_patterns([model])
    except ValueError as error:
        yield DocumentError(file, place, str(error), "a pattern like gpt-6* or /^gpt-6/")


def _counter(
    document: Mapping[str, Any], path: Path, make: Callable[[Path], Callable[[str], int]]
) -> Callable[[str, str], int] | None:
    if "tokenizer" not in document:
        return None
    loaded: list[Callable[[str], int]] = []

    def count(text: str, place: str) -> int:
        if not loaded:
            try:
                loaded.append(make(path.parent / document["tokenizer"]))
            except ImportError as error:
                raise DocumentError(
                    str(path), place, "no tokenizers package", "tokens, or the extra [tokens]"
                ) from error
            except Exception as error:  # the package raises bare exceptions for what it cannot read
                raise DocumentError(str(path), "tokenizer", str(error), "a readable tokenizer.json") from error
        return loaded[0](text)

    return count


def _tokenizer(path: Path) -> Callable[[str], int]:
    from tokenizers import Tokenizer  # noqa: PLC0415  # an extra: only inventories with fixtures need it

    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
