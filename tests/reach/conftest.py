"""Every kind of store, for what must hold on each."""

from tests.helpers.stores import store as store
