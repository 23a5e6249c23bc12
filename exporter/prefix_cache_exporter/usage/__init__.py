"""The usage plane: log lines of any format to canonical usage records."""
