"""Engines: who drives a session, and again if they die. `inline` is one process, `restate` decides among many."""
