"""Release identity: model, tokenizer, chat template and prompt template pinned together.

Identity comes from a usage record itself, else from the release file, else from configuration or the environment. The
file may be a ConfigMap key or a Downward API file; Kubernetes updates both by swapping a symlink, so it is looked at by
content, never by inode or event (jimmidyson/configmap-reload#190).
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .documents import DocumentError, parse_yaml, read_schema, shown, validate
from .labels import MIXED
from .mistakes import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)

ENVIRONMENT_PREFIX = "PREFIX_CACHE_RELEASE_"
"""`PREFIX_CACHE_RELEASE_TEMPLATE=support` sets `template`, and so on for every key of the release schema."""
_ANNOTATION_PREFIX = "prefix-cache-exporter/"
_DOWNWARD = re.compile(r'^([A-Za-z0-9./_-]+)="((?:[^"\\]|\\.)*)"$')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}
_SURROGATES = range(0xD800, 0xE000)  # no characters: nothing could write them out again
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Release:
    """What is pinned together.

    Attributes:
        template: which prompt template. Empty where nobody said.
        template_revision: its revision. Empty where nobody said.
        tokenizer_revision, model_revision: revisions of the artefacts behind it.
        release_fingerprint: fingerprint of the whole pin; two of them under one revision are drift.
        leading_fingerprint: fingerprint of the leading token blocks of the fixture.
        predecessor_revision: the revision it replaces, for people; no rule needs it.
        predicted_population_hit_ratio: the ratio a warm fleet is expected to reach.
        cold_window_seconds: how long after its first traffic the revision is expected to be cold.
    """

    template: str = ""
    template_revision: str = ""
    tokenizer_revision: str = ""
    model_revision: str = ""
    release_fingerprint: str = ""
    leading_fingerprint: str = ""
    predecessor_revision: str = ""
    predicted_population_hit_ratio: float | None = None
    cold_window_seconds: float | None = None

    @property
    def labels(self) -> dict[str, str]:
        """The two labels that counters carry."""
        return {"template": self.template, "template_revision": self.template_revision}

    @property
    def names_it(self) -> bool:
        """Whether it names a template or a revision at all."""
        return bool(self.template or self.template_revision)


NOBODY_SAID = Release()
"""The release of traffic that nobody has named: both labels are empty."""

_NUMBERS = frozenset({"predicted_population_hit_ratio", "cold_window_seconds"})


@dataclass(frozen=True, slots=True)
class Releases:
    """What a release file or a configuration block declares.

    Attributes:
        in_force: the release of increases that name none.
        known: every declared release by template and revision, `in_force` included.
    """

    in_force: Release = NOBODY_SAID
    known: Mapping[tuple[str, str], Release] | None = None

    def find(self, template: str, template_revision: str) -> Release | None:
        """The declared release of a template and revision."""
        return (self.known or {}).get((template, template_revision))


def credited(before: Release, after: Release) -> dict[str, str]:
    """The labels that an increase between two polls is credited to.

    Both polls saw the same release: that one. Otherwise nobody can tell how much belongs to which, and the increase is
    `mixed`; the template stays where both are of one template.
    """
    if before.labels == after.labels:
        return after.labels
    template = after.template if before.template == after.template else MIXED
    return {"template": template, "template_revision": MIXED}


def from_mapping(data: Mapping[str, Any], file: str) -> Releases:
    """Reads a checked mapping: one release, or `releases:` with at most one `in_force: true`.

    Raises:
        DocumentError: for every place where it does not fit the release schema, and where releases share a revision.
    """
    definitions = read_schema("release")["$defs"]
    kind = "several" if "releases" in data else "release"
    validate(data, {"$ref": f"#/$defs/{kind}", "$defs": definitions}, file)
    rows = [dict(row) for row in data.get("releases", [data])]
    known: dict[tuple[str, str], Release] = {}
    chosen: list[Release] = []
    wrong: list[DocumentError] = []
    for place, row in enumerate(rows):
        in_force = row.pop("in_force", len(rows) == 1)
        outer = f"releases[{place}]." if "releases" in data else ""
        wrong += [
            DocumentError(file, f"{outer}{key}", shown(row.pop(key)), "a finite number")
            for key in sorted(_NUMBERS & row.keys())
            if not _is_finite(row[key])
        ]
        release = _release(row)
        name = (release.template, release.template_revision)
        if name in known:
            wrong.append(
                DocumentError(file, f"releases[{place}]", f"{'/'.join(name)} a second time", "each revision once")
            )
        known[name] = release
        if in_force:
            chosen.append(release)
    if len(chosen) > 1:
        wrong.append(
            DocumentError(file, "releases", f"{len(chosen)} releases in force", "one in_force: true at the most")
        )
    refuse(wrong, data)
    return Releases(chosen[0] if chosen else NOBODY_SAID, known)


def from_environment(environment: Mapping[str, str]) -> Releases | None:
    """The release that `PREFIX_CACHE_RELEASE_*` variables name; None where there is none of them.

    Raises:
        DocumentError: for a variable that is no key of a release, or a number that is none.
    """
    named = {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX) and value
    }
    return from_mapping(_typed(named), "environment") if named else None


def parse_release_file(content: bytes, file: str) -> Releases:
    """Reads a release file: YAML or JSON, or a Downward API annotations file (`name="value"` lines).

    Raises:
        DocumentError: where it is neither, or does not fit the release schema.
    """
    text = content.decode("utf-8", errors="replace")
    pairs = [_DOWNWARD.match(line) for line in text.splitlines() if line.strip()]
    if pairs and all(pairs):
        ours = {
            pair[1].removeprefix(_ANNOTATION_PREFIX).replace("-", "_"): _unquoted(pair[2])
            for pair in pairs
            if pair and pair[1].startswith(_ANNOTATION_PREFIX)
        }
        return from_mapping(_typed(ours), file)
    data = parse_yaml(content, file)
    if not isinstance(data, dict):
        raise DocumentError(file, "document", "nothing" if data is None else type(data).__name__, "a mapping")
    return from_mapping(data, file)


def _unquoted(text: str) -> str:
    """Text as Go's `%q` writes it, which the Downward API uses (k8s.io/kubernetes/pkg/fieldpath FormatMap)."""
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1]) or _character(found[1]), text)


def _character(escape: str) -> str:
    number = int(escape[1:], 16) if len(escape) > 1 else 0
    return chr(number) if 0 < number <= sys.maxunicode and number not in _SURROGATES else escape


def read_release_file(path: Path) -> Releases:
    """Reads a release file once.

    Raises:
        DocumentError: where it cannot be read, is too large, or is no release.
    """
    return parse_release_file(_content(path), str(path))


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise DocumentError(str(path), "file", (error.strerror or "an error").lower(), "a readable file") from error
    if len(content) > _LARGEST:
        raise DocumentError(str(path), "file", "more than 1 MiB", "a release of a few lines")
    return content


class ReleaseFile:
    """A release file that is looked at again and again; what it last said stands until it says something new.

    Attributes:
        releases: what it declares now.
        valid: whether the last look succeeded.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.releases = Releases()
        self.valid = True
        self._digest: bytes | None = None
        self._complaint = ""

    def look(self) -> bool:
        """Reads the file where its content has changed. Returns whether the releases did."""
        try:
            content = _content(self.path)
            digest = hashlib.blake2b(content).digest()
            if digest == self._digest:
                self.valid, self._complaint = True, ""
                return False
            releases = parse_release_file(content, str(self.path))
        except DocumentError as error:
            self._keep(str(error))
            return False
        self._digest, self.valid, self._complaint = digest, True, ""
        changed = releases != self.releases
        self.releases = releases
        return changed

    def _keep(self, complaint: str) -> None:
        if complaint != self._complaint:  # once per mistake, not once per look
            kept = " ".join(filter(None, self.releases.in_force.labels.values())) or "none so far"
            _log.error("release file not taken, what was in force stays (%s): %s", kept, complaint)
        self.valid, self._complaint = False, complaint


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond all floats
        return False


def _release(row: Mapping[str, Any]) -> Release:
    values: dict[str, Any] = {key: float(value) if key in _NUMBERS else value for key, value in row.items()}
    return Release(**values)


def _typed(named: Mapping[str, str]) -> dict[str, Any]:
    """Text from the environment or annotations with numbers where the schema wants them; the rest it refuses itself."""
    typed: dict[str, Any] = dict(named)
    for key in _NUMBERS & named.keys():
        try:
            typed[key] = float(named[key])
        except ValueError:
            typed[key] = named[key]
    return typed
