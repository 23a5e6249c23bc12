"""Prices and costs, exact: books as data, what holds for a request, and what one and many of them cost.

Prices stand in the books as decimals; beyond `sheets` they are whole numbers of 10^-18 of the currency per token, so
that the arithmetic is exact. Costs are whole trillionths. What cannot be priced is not priced, with the reason.
"""
