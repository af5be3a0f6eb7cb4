"""What is said to a connection so that it reads for one tenant is one text, whatever the tenant is called."""

from __future__ import annotations

import pytest

from everturn.core.tenants.sharing import Reader
from everturn.stores.sql.row_security import ReadScope, set_scope_sql


@pytest.mark.parametrize(
    ("tenant", "literal"),
    [
        ("acme", "E'acme'"),
        ("o'hara", "E'o''hara'"),
        ("x'; RESET ROLE; --", "E'x''; RESET ROLE; --'"),
        ("x\\'; RESET ROLE; --", "E'x\\\\''; RESET ROLE; --'"),
    ],
)
def test_the_name_of_a_tenant_is_never_read_as_a_command(tenant: str, literal: str) -> None:
    sql = set_scope_sql('re"ader', ReadScope(tenant, Reader(tenant, (tenant,), ())))
    assert sql.startswith(
        f'SET ROLE "re""ader"; SET everturn.tenant = {literal}; SET everturn.reader = E\'{{"creators":['
    )
    assert sql.endswith(f"; SET everturn.viewer = E'u:{literal[2:]}")
    assert set_scope_sql("", ReadScope("a")).endswith("SET everturn.reader = E''; SET everturn.viewer = E''")


def test_outside_of_walls_nothing_is_left_of_them() -> None:
    whole = "RESET ROLE; RESET everturn.tenant; RESET everturn.viewer; RESET everturn.reader"
    assert set_scope_sql("reader", None) == whole
