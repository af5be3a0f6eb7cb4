"""Permissions: what a call would do, in terms that rules can be held against."""
