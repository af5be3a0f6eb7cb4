"""Plugins: nothing here that a stranger could not write."""
