"""Log lines to fragments of usage records; one normaliser per source, compiled once from its map."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from .events import data_of, is_framing
from .extract.fragment import extract
from .extract.lines import records, written
from .extract.tokens import numbers_only, usage_object
from .lenient import behind, values_of, why_no_json
from .named import known_names, without_others
from .paths import parse_path
from .record import Fragment, Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .maps.model import UsageMap

KEY_BYTES = 12
"""Of a hashed id: among a million ids, two share one with a chance of 1 to 10^17."""

_BLANK = (Skipped("ignored", "blank"),)
_SERVER_SENT = (Skipped("ignored", "event_stream_framing"),)
_IDS = frozenset({"session", "parent", "thread"})
"""What a line may say of later ones that is an id."""
_TEXT = (Skipped("ignored", "text"),)
_TOO_DEEP = (Skipped("lost", "too_deep", "JSON nested too deeply"),)


class Normaliser:
    """Reads lines of one source.

    Args:
        usage_map: the format's facts.
        fields: paths that the source's configuration asks for, by name; they come out as `UsageRecord.extra`.
        provider: the source's provider, whatever records say.
        models: names that records use, to the names that count.
        protect: what to keep of the asked-for fields, applied at once: raw tenants go no further, not even into the
            state of records that are still merging.
        hash_key: keys the hashes of ids; up to 64 bytes.
        keep_raw: whether quarantined records carry the numbers of their usage object.

    Raises:
        PathError: where a field's path is none.
    """

    def __init__(
        self,
        usage_map: UsageMap,
        *,
        fields: Mapping[str, str] | None = None,
        provider: str | None = None,
        models: Mapping[str, str] | None = None,
        protect: Callable[[dict[str, str]], dict[str, str]] | None = None,
        hash_key: bytes = b"",
        keep_raw: bool = False,
    ) -> None:
        self.usage_map = usage_map
        self._fields = {name: parse_path(path) for name, path in (fields or {}).items()}
        self._provider = provider
        self._models = dict(models or {})
        self._protect = protect
        self._digest = digester(hash_key)
        self._keep_raw = keep_raw
        self._names = known_names(usage_map) if keep_raw else frozenset()
        self._decode = msgspec.json.Decoder().decode

    def feed(self, line: bytes) -> tuple[Fragment | Skipped, ...]:
        """What one line says, one item per record in it; never raises."""
        try:
            decoded = self._decode(line)
        except RecursionError:
            return _TOO_DEEP
        except ValueError:
            return self._feed_odd(line)
        return self.feed_decoded(decoded)

    def feed_decoded(self, line: Any) -> tuple[Fragment | Skipped, ...]:
        """What a decoded line, or item of a JSON array, says; never raises."""
        found: list[Fragment | Skipped] = []
        for item in line if isinstance(line, list) else (line,):
            text = written(item) if self.usage_map.unwraps else None
            if text is not None:
                found += self.feed(text.encode("utf-8", "replace"))
            else:
                found += map(self._finished, records(item, self.usage_map))
        return tuple(found)

    def _feed_odd(self, line: bytes) -> tuple[Fragment | Skipped, ...]:
        """Lines of server-sent events, and JSON that only lenient readers take: NaN, lone surrogates, broken UTF-8."""
        text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if not text:
            return _BLANK
        if is_framing(text):
            return _SERVER_SENT
        text = data_of(text)
        try:
            found = values_of(text)
        except RecursionError:
            return _TOO_DEEP
        except ValueError as error:
            if self.usage_map.text == "lost" or text[0] in "{[":
                return (Skipped("lost", "not_json", why_no_json(text, error)),)
            found = behind(text) if self.usage_map.text == "prefix" else []
            if not found:
                return _TEXT
        return tuple(item for decoded in found for item in self.feed_decoded(decoded))

    def _finished(self, record: Any) -> Fragment | Skipped:
        usage_map = self.usage_map
        fragment = extract(record, usage_map, self._fields)
        if not isinstance(fragment, Fragment):
            return fragment
        if fragment.context is not None:
            for name in _IDS & fragment.context.keys():
                fragment.context[name] = self.key(fragment.context[name]).hex()
            return fragment
        if self._provider is not None:
            fragment.provider = self._provider
        if fragment.model is not None and self._models:
            fragment.model = self._models.get(fragment.model, fragment.model)
        if fragment.id is not None:
            fragment.key = self.key(
                fragment.id, (fragment.status or usage_map.default_status) if usage_map.identity_has_status else None
            )
        if fragment.extra is not None and self._protect is not None:
            fragment.extra = self._protect(fragment.extra)
        if self._keep_raw and fragment.bad:
            fragment.raw = without_others(numbers_only(usage_object(record, usage_map)), self._names)
        return fragment

    def key(self, *parts: str | None) -> bytes:
        """What stands for an id wherever it is kept."""
        text = "\0".join(part for part in parts if part is not None)
        return self._digest(text.encode("utf-8", "surrogatepass")).digest()


def digester(key: bytes = b"") -> Callable[[bytes], blake2b]:
    """The hash that stands for ids; keyed where a key is given."""
    return partial(blake2b, digest_size=KEY_BYTES, key=key) if key else partial(blake2b, digest_size=KEY_BYTES)
