"""Prompt-prefix reuse of LLM services, as counters whose ratios name both sides."""

__version__ = "0.1.0"
