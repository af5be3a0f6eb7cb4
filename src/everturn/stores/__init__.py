"""Stores: the log, the inbox and their projections. `memory` is the reference."""
