"""The process: workers, the commit loop, signals, reload, and the orderly end."""
