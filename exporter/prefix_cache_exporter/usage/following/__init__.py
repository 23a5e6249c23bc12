"""The parts of following logs: what is known, what is open, and how files are told from one another."""
