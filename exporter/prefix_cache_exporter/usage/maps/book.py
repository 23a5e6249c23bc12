"""The maps that are known by name: the shipped ones, and the user's beside them."""

from __future__ import annotations

from collections import ChainMap
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.mistakes import Mistakes

from .compiler import compile_map
from .files import read_map, shipped_files, user_files
from .folding import lay_over
from .mistakes import whole_or_raise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from .model import UsageMap


class UnknownFormatError(ValueError):
    """A format that no map describes.

    Attributes:
        format: the name that was asked for.
        near: known names that look like it.
    """

    def __init__(self, name: str, near: tuple[str, ...]) -> None:
        self.format, self.near = name, near
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `usage formats` lists them"
        super().__init__(f"no usage map is called {name!r}{hint}")


class MapBook:
    """Every known map: the shipped ones, and the user's from folders and files, which may not reuse a shipped name.

    Raises:
        DocumentError: for a user map that cannot be used; shipped ones are read when asked for.
    """

    def __init__(self, user: Iterable[Path | str] = ()) -> None:
        own: dict[str, dict[str, Any]] = {}
        self._documents: Mapping[str, dict[str, Any]] = ChainMap(own, shipped_files())  # type: ignore[arg-type]  # written to `own` only
        self._files = {name: f"{name}.yaml" for name in self._documents}
        self._maps: dict[str, UsageMap] = {}
        wrong = Mistakes()
        for file in user_files(user):
            with wrong:
                document = read_map(file)
                name = document["format"]
                if name in self._documents:
                    whose = f"{self._files[name]} has it" if name in own else "one of the shipped ones has it"
                    raise DocumentError(str(file), "format", name, f"a name that no other map has; {whose}")
                own[name], self._files[name] = document, str(file)
        wrong.refuse()  # one map may stand on another
        self._own = frozenset(own)
        if own:
            self._aliases  # noqa: B018  # a user's map may claim a name that another has
        for name in own:
            with wrong:
                self.get(name)
        wrong.refuse()

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        """Names by alias; to know them, every map must be read, which most commands need not."""
        aliases: dict[str, str] = {}
        for name, document in self._documents.items():
            for alias in document.get("aliases", ()):
                if alias in self._documents or aliases.get(alias, name) != name:
                    raise DocumentError(self._files[name], "aliases", alias, "a name that no other map has")
                aliases[alias] = name
        return aliases

    def _name(self, name: str) -> str:
        return name if name in self._documents else self._aliases.get(name, name)

    def _near(self, name: str) -> tuple[str, ...]:
        """Known names that look like one that is not."""
        from difflib import get_close_matches  # noqa: PLC0415  # for mistakes alone

        return tuple(get_close_matches(name, [*self._documents, *self._aliases], n=2))

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of all maps, aliases aside."""
        return tuple(sorted(self._documents))

    def get(self, name: str) -> UsageMap:
        """The map of a format, by its name or an alias.

        Raises:
            UnknownFormatError: where there is none.
            DocumentError: where the map cannot be compiled.
        """
        name = self._name(name)
        if name not in self._documents:
            raise UnknownFormatError(name, self._near(name))
        if name not in self._maps:
            compiled = _shipped_map(name) if name not in self._own else self._compile(name)
            self._maps[name] = compiled
        return self._maps[name]

    def _compile(self, name: str) -> UsageMap:
        folded = self._fold(name, ())
        whole_or_raise(folded, self._files[name])
        return compile_map(folded, self._files[name])

    def _fold(self, name: str, seen: tuple[str, ...]) -> dict[str, Any]:
        document = self._documents[name]
        base = document.get("extends") or document.get("usage_from")
        if base is None:
            return document
        key = "extends" if "extends" in document else "usage_from"
        base = self._name(base)
        if base not in self._documents:
            near = self._near(base)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise DocumentError(self._files[name], key, base, f"the name of a format{hint}")
        if base in seen or base == name:
            raise DocumentError(self._files[name], key, base, "a format that does not lead back to this one")
        folded = self._fold(base, (*seen, name))
        return lay_over(folded, document, self._files[name])


@cache
def shipped_maps() -> MapBook:
    """The shipped maps, read once per process."""
    return MapBook()


def get_map(name: str) -> UsageMap:
    """A shipped map by its name or an alias.

    Raises:
        UnknownFormatError: where there is none.
    """
    return shipped_maps().get(name)


@cache
def _shipped_map(name: str) -> UsageMap:
    return MapBook()._compile(name)  # noqa: SLF001  # its own class's member
