"""Rules, alerts and dashboards, generated from the catalogue of measures and one pack file."""
