"""From a decoded line to what it says, for any shape that a map can describe.

This is the general way: it looks every path up in decoded JSON and never raises, whatever the line holds. `typed.py`
does the same for plain lines faster.
"""
