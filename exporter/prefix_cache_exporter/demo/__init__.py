"""The demo: what the exporter makes of a server, on one machine and without a GPU."""
