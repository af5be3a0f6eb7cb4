"""What is said to a connection so that it reads for one tenant is one text, whatever the tenant is called."""

from __future__ import annotations

import pytest

from everturn.stores.sql.row_security import set_tenant_sql


@pytest.mark.parametrize(
    ("tenant", "said"),
    [
        ("acme", "E'acme'"),
        ("o'hara", "E'o''hara'"),
        ("x'; RESET ROLE; --", "E'x''; RESET ROLE; --'"),
        ("x\\'; RESET ROLE; --", "E'x\\\\''; RESET ROLE; --'"),
    ],
)
def test_the_name_of_a_tenant_is_never_read_as_a_command(tenant: str, said: str) -> None:
    assert set_tenant_sql('re"ader', tenant) == f'SET ROLE "re""ader"; SET everturn.tenant = {said}'


def test_outside_of_walls_nothing_is_left_of_them() -> None:
    assert set_tenant_sql("reader", None) == "RESET ROLE; RESET everturn.tenant"
