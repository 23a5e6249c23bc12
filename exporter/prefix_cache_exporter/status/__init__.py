"""The status page: what a person without Grafana sees of every source."""
