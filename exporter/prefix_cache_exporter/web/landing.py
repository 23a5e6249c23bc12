from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .http import HTML, Response

if TYPE_CHECKING:
    from collections.abc import Sequence

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>prefix-cache-exporter</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem; padding: 0 1rem }}
</style>
<h1>prefix-cache-exporter</h1>
<p>Prompt-prefix reuse of LLM services, as counters whose ratios name both sides.</p>
<p>{version}</p>
<ul>
{links}
</ul>
</html>
"""


def landing(version: str, links: Sequence[tuple[str, str]]) -> Response:
    """The page at `/` for a person: what this is, its version, and where to go from here.

    Args:
        version: the line that `--version` prints.
        links: address and text of each link.
    """
    items = "\n".join(f'<li><a href="{escape(address)}">{escape(text)}</a></li>' for address, text in links)
    body = _PAGE.format(version=escape(version), links=items)
    return Response(body, content_type=HTML, headers=(("Content-Security-Policy", _POLICY),))
