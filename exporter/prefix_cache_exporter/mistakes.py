"""What is wrong with a document: each mistake on a line, all of them at once, in the document's own order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST: Final = 20
"""So many mistakes are told at once; of others only how many there are."""


def printable(text: str) -> str:
    """Text on one line, harmless on a terminal, and such that a person sees what else it holds than letters."""
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


class DocumentError(ValueError):
    """A document that cannot be used.

    Attributes:
        file: the file, as the user named it.
        path: the place within the file, like `engines[0].url`, or a line and column.
        got: what stood there.
        expected: what should have stood there.
    """

    def __init__(self, file: str, path: str, got: str, expected: str) -> None:
        self.file, self.path, self.got, self.expected = file, path, got, expected
        super().__init__(printable(f"{file}: {path}: got {got}, expected {expected}"))

    @property
    def each(self) -> tuple[DocumentError, ...]:
        """The mistakes, one by one."""
        return (self,)


class SeveralMistakesError(DocumentError):
    """Several mistakes at once, a line each; the attributes are those of the first."""

    def __init__(self, errors: Iterable[DocumentError]) -> None:
        self._each = tuple(errors)
        first = self._each[0]
        super().__init__(first.file, first.path, first.got, first.expected)
        lines = [str(error) for error in self._each[:MOST]]
        left = len(self._each) - len(lines)
        self.args = ("\n".join([*lines, *([f"{left} more mistake{'s' * (left > 1)}"] if left else [])]),)

    @property
    def each(self) -> tuple[DocumentError, ...]:
        """The mistakes, one by one."""
        return self._each


class Mistakes:
    """Gathers what is wrong, where one mistake does not keep the next from being seen."""

    def __init__(self) -> None:
        self._found: list[DocumentError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """Takes the mistakes that ended a `with` block, and goes on behind it."""
        if isinstance(error, DocumentError):
            self.add(*error.each)
        return isinstance(error, DocumentError)

    def add(self, *errors: DocumentError) -> None:
        """Takes mistakes in."""
        self._found += errors

    def refuse(self, data: Any = None) -> None:
        """Raises what was found, if anything was.

        Args:
            data: the document, whose order the mistakes are then told in.

        Raises:
            DocumentError: all that was found.
        """
        refuse(self._found, data)


def refuse(errors: Iterable[DocumentError], data: Any = None) -> None:
    """Raises mistakes, if there are any; each once.

    Args:
        errors: what is wrong.
        data: the document, whose order they are then told in.

    Raises:
        DocumentError: all of them.
    """
    found = list({str(error): error for error in errors}.values())
    if data is not None:
        found = in_order(found, data)
    if found:
        raise found[0] if len(found) == 1 else SeveralMistakesError(found)


def in_order(errors: Iterable[DocumentError], data: Any) -> list[DocumentError]:
    """Mistakes of one document in the order of the places where they stand."""
    return sorted(errors, key=lambda error: tuple(_steps(error.path, data)))


def _steps(path: str, data: Any) -> Iterator[int]:
    """For each step of a place, as which of its parent's items it stands there; ends where the document does."""
    while path:
        for number, (step, inner) in enumerate(_items(data)):
            if path.startswith(step) and (len(path) == len(step) or path[len(step)] in ".["):
                yield number
                path, data = path[len(step) :].removeprefix("."), inner
                break
        else:
            return


def _items(data: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield f"[{key}]" if isinstance(key, int) else str(key), value
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield f"[{number}]", value
