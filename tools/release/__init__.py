"""Releases: build one, and keep what later versions are tested against."""
