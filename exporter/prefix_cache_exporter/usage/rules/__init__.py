"""From what a source reports to what it means: the additive rule, reconciled with the reported total.

INCLUSIVE: the input number holds reads and writes.  uncached = input - read - write, total = input.
EXCLUSIVE: it holds neither.                         uncached = input, total = input + read + write.

The total tells the two apart where they differ. Where read + write exceed an inclusive input, the total may still say
which of two things happened; where it equals input + output, only the source does: a provider's own numbers are then
inconsistent (https://community.openai.com/t/1330187), a gateway's leave the cached tokens out
(https://github.com/earendil-works/pi/issues/2048).
"""
