"""`everturn auth`: stores, lists and removes the API keys of model vendors."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches

from everturn.cli.output import is_terminal, print_error
from everturn.config.available_models import check_vendor_key
from everturn.config.key_store import KEY_VARIABLES, KeyStore, check_key, guess_key_vendor
from everturn.errors import ConfigError
from everturn.models.vendors import VENDORS

VENDORS_WITH_KEYS = tuple(KEY_VARIABLES.values())


def auth(options: argparse.Namespace) -> int:
    """Run `everturn auth login|list|logout`, and return the exit code.

    Raises:
        ConfigError: there is no such vendor, the key is no key, or it cannot be stored.
    """
    keys = KeyStore()
    if options.about == "login":
        return _login(options.vendor, keys)
    if options.about == "logout":
        return _logout(_checked_vendor(options.vendor), keys)
    return _list(keys)


def _login(vendor: str, keys: KeyStore) -> int:
    vendor = _checked_vendor(vendor) if vendor else ""
    key = check_key(_read_key(vendor))
    vendor = vendor or guess_key_vendor(key)
    if not vendor:
        raise ConfigError(f"whose key is this? Name the vendor: {', '.join(VENDORS_WITH_KEYS)}")
    check = check_vendor_key(vendor, key)
    if check.is_refused:
        return print_error(f"{check.problem}; nothing was stored. Look at the key, and try again", 2)
    place = keys.save(VENDORS[vendor].key, key)
    found = f"; it offers {len(check.models)} models (`everturn models`)"
    found = found if check.models else f"; it could not be checked: {check.problem}"
    print(f"The key of {vendor} is stored in {place}{found}")
    return 0


def _read_key(vendor: str) -> str:
    if not is_terminal(sys.stdin):
        return sys.stdin.readline()
    from getpass import getpass

    return getpass(f"API key{f' of {vendor}' if vendor else ''} (it is not shown): ")


def _list(keys: KeyStore) -> int:
    rows = [(KEY_VARIABLES[variable], variable, place) for variable, place in keys.places()]
    if not rows:
        print("no keys; `everturn auth login` stores one")
        return 0
    for vendor, variable, place in rows:
        where = {"environment": f"{variable} in the environment", "file": str(keys.file), "keyring": "keyring"}[place]
        print(f"{vendor:<12} {where}")
    return 0


def _logout(vendor: str, keys: KeyStore) -> int:
    variable = VENDORS[vendor].key
    was_stored = keys.remove(variable)
    if dict(keys.places()).get(variable) == "environment":
        print(f"{variable} is set in the environment, and is still used; unset it")
    elif not was_stored:
        return print_error(f"no key of {vendor} is stored; `everturn auth list` lists them", 2)
    if was_stored:
        print(f"The key of {vendor} is removed")
    return 0


def _checked_vendor(name: str) -> str:
    vendor = name.lower()
    if vendor in VENDORS_WITH_KEYS:
        return vendor
    close = get_close_matches(vendor, VENDORS_WITH_KEYS, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ConfigError(f"there is no vendor {name!r} with keys{hint} There are: {', '.join(VENDORS_WITH_KEYS)}")
