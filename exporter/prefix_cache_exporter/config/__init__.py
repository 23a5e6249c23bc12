"""Typed configuration: a strict schema for people and editors, frozen records for the program."""
