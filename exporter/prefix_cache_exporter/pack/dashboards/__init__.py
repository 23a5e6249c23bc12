"""Dashboards, each answering one question; queries, variables and panels apart from the modules that lay out."""
