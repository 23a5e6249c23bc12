"""The fast lane: plain lines by generated code, one by one or whole blocks at once."""
