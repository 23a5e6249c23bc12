from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .say import DONE, failed, tokens

if TYPE_CHECKING:
    import argparse

    from prefix_cache_exporter.usage.eligible import Eligibility
    from prefix_cache_exporter.usage.inventory import Inventory


def register_check(checks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `check inventory FILE`."""
    check = checks.add_parser(
        "inventory",
        help="a prefix inventory",
        description="Holds a prefix inventory against its schema, counts its fixtures and lists the shared prefixes; "
        "with --provider and --model also how much of each can be reused there.",
        allow_abbrev=False,
    )
    check.add_argument("file", metavar="FILE")
    check.add_argument("--provider", help="whose reuse rules to apply")
    check.add_argument("--model", help="whose tokenizer's counts and reuse rules to take")
    check.add_argument("--block-size", type=tokens, metavar="TOKENS", help="tokens in a KV block of the engine")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(run=_check)


def _check(args: argparse.Namespace) -> int:
    from prefix_cache_exporter.documents import DocumentError
    from prefix_cache_exporter.usage.eligible import Eligibility
    from prefix_cache_exporter.usage.inventory import load_inventory, remarks

    try:
        inventory = load_inventory(args.file)
    except DocumentError as error:
        return failed(error)
    notes = list(remarks(inventory))
    rows = list(_rows(inventory, Eligibility(inventory, block_size_tokens=args.block_size), args))
    if args.json:
        print(json.dumps({"file": args.file, "prefixes": rows, "remarks": notes}, ensure_ascii=False))
        return DONE
    print(f"{args.file}: ok, {len(rows)} shared prefix{'' if len(rows) == 1 else 'es'}")
    for row in rows:
        print(_line(row))
    for note in notes:
        print(f"note: {note}")
    return DONE


def _rows(inventory: Inventory, eligibility: Eligibility, args: argparse.Namespace) -> Any:
    for (template, revision), segments in inventory.prefixes.items():
        row: dict[str, Any] = {
            "template": template,
            "template_revision": revision,
            "segments": [segment.name for segment in segments],
            "tokens": inventory.tokens(template, revision, args.model),
        }
        if args.provider and row["tokens"] is not None:
            found = eligibility.reusable(row["tokens"], None, args.provider, args.model)
            row["eligible_tokens"] = None if isinstance(found, str) else found
            if isinstance(found, str):
                row["reason"] = found
        yield row


def _line(row: dict[str, Any]) -> str:
    tokens = "unknown tokens" if row["tokens"] is None else f"{row['tokens']} tokens"
    line = f"{row['template']} {row['template_revision'] or '(other revisions)'}: {tokens}"
    if "eligible_tokens" in row:
        line += f", {row.get('reason') or row['eligible_tokens']} eligible"
    return f"{line}: {' + '.join(row['segments']) or 'nothing shared'}"
