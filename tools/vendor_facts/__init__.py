"""Vendor facts: what the SDK packages of vendors say about their APIs, compared with what the wire formats know.

`inventory` lists it from installed packages, `reviewed` says what is mapped and why the rest is not, `check` compares the two.
"""
