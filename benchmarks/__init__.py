"""What the speed and memory figures of the README are measured with: `python -m benchmarks [NAME…] [--json]`."""
