"""Usage maps: the facts of one log format, read, folded over the map they extend, and compiled.

A map is facts only, `metric_maps/usage/<format>.yaml`; `metric_maps/schema/usage.schema.json` explains its keys.
A map of the user's own follows the same schema. The common case, a known object inside an envelope:

    format: shop.llm
    usage_from: openai.chat
    at: $.response.body
    id: $.request_id
    time: $.ts
"""
