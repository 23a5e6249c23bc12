"""What finished logs add up to: ratios with both sides, tokens, cost, latency, outcomes and what was left out."""
