"""The exporter's own HTTP surface: pages, health, metrics, and the servers that offer them."""
