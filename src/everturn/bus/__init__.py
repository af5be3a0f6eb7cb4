"""Buses: the live edge between a driver and the readers of its turns. `memory` is one process, `nats` joins many."""
