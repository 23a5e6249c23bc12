"""Fragments to settled records: events of a stream and repeated lines merge by id, field by field.

A later value that is not null wins, an explicit 0 included, and nothing is added: usage in stream events is cumulative
(https://github.com/envoyproxy/ai-gateway/issues/2279, https://github.com/BerriAI/litellm/pull/40743), save in lines
that a map says to hold increases. A record settles when its format says that nothing more follows, or after it has
been silent for a while; repeats of a settled one are duplicates. Without an id each record is distinct, save for events
of a stream that follow one another in a file.
"""
