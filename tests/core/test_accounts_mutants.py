"""A chain of what was done: whoever changes a record has to change all that come behind it."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.tenants.accounts import AuditRecord, append_to_chain, check_chain


def test_a_record_that_was_written_anew_with_its_hash_is_seen_by_the_one_behind_it() -> None:
    chain: list[AuditRecord] = []
    for n in range(4):
        record = AuditRecord("acme", float(n), "ada", "key", f"did {n}")
        chain.append(append_to_chain(record, chain[-1] if chain else None))
    forged = append_to_chain(replace(chain[1], by="eve"), chain[0])

    assert check_chain(chain) == []
    assert check_chain([chain[0], forged]) == []  # by itself nothing is wrong with it
    assert check_chain([chain[0], forged, *chain[2:]]) == [
        "record 3 is not what was written, or not behind what was written before it"
    ]
