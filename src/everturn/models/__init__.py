"""Models: each file speaks one wire format; `scripted` is the reference and needs no network."""
