"""Encryption of stored content with a data key per tenant (decision 0209).

tenant_cipher    what a data key does: encrypts a value for its place, and hashes names
data_keys        the data keys that this process uses, and whether they still exist
master_keys      wraps and unwraps data keys with a configured master key
keyring          the built-in `KeyProvider`: wrapped data keys, kept apart from the store
file_keyring     a keyring in a folder
postgres_keyring a keyring in a PostgreSQL database of its own
"""
