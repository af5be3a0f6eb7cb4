"""Sharing store contract: shares of sessions, links, notices, temporary sessions, and what lists and searches show a reader."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.options import TurnOptions
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import Principal
from everturn.core.tenants.sharing import Share, reader_of, role_subject, user_subject
from everturn.testing.contracts.directory import send_to_agent
from everturn.testing.contracts.samples import NOON, turn_ended_events, turn_started_events

ADA, BOB = Principal("a", "ada", "member"), Principal("a", "bob", "member")
OWNER = Principal("a", "olga", "owner")


def make_share(id: str = "s1", session: str = "of-ada", user: str = "bob", **more: object) -> Share:
    """A share with a user."""
    fields: dict[str, object] = {"kind": "user", "subject": user_subject(user), "by": "ada", "created": NOON, **more}
    return Share(id=id, tenant="a", session=session, **fields)  # pyright: ignore[reportArgumentType]


class SharingStoreContract:
    """The port `SharingStore`, and `reader` in lists and searches."""

    async def make(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    async def filled(self) -> Store:
        """A store with a session of Ada, one of Bob and one of nobody."""
        store = await self.make()
        for user in ("ada", "bob", ""):
            name, turn = f"of-{user}", f"t-{user}"
            await store.admit(send_to_agent(name, turn, "a", options=TurnOptions(by=user)))
            events = [*turn_started_events(turn, text="apple", command=f"{turn}.k"), *turn_ended_events(turn)]
            await store.append(name, 0, events)
        return store

    async def seen(self, store: Store, principal: Principal, now: float = NOON) -> tuple[set[str], set[str]]:
        """What a principal has in lists, and finds."""
        reader = reader_of(principal, now)
        page = await store.session_page("a", reader=reader)
        return {info.id for info in page}, {name for name, _ in await store.search("apple", "a", reader=reader)}

    async def test_a_reader_sees_their_own_and_an_owner_what_is_nobodys(self) -> None:
        store = await self.filled()
        assert await self.seen(store, ADA) == ({"of-ada"}, {"of-ada"})
        assert await self.seen(store, BOB) == ({"of-bob"}, {"of-bob"})
        assert await self.seen(store, OWNER) == ({"of-"}, {"of-"})
        assert len(await store.session_page("a")) == 3

    async def test_shares_count_until_they_are_revoked_or_expire(self) -> None:
        store = await self.filled()
        far = 4e9  # PostgreSQL compares with its own clock
        await store.sharing.add(make_share(expires=far))
        await store.sharing.add(make_share("s2", "of-bob", kind="role", subject=role_subject("member")))
        assert await self.seen(store, BOB) == ({"of-ada", "of-bob"}, {"of-ada", "of-bob"})
        assert await self.seen(store, OWNER) == ({"of-", "of-bob"}, {"of-", "of-bob"})
        assert await self.seen(store, Principal("a", "vera", "viewer")) == (set(), set())
        assert (await self.seen(store, BOB, far + 1))[0] == {"of-bob"}
        assert await store.sharing.revoke("a", "of-bob", "s1", NOON) is False
        assert await store.sharing.revoke("b", "of-ada", "s1", NOON) is False
        assert await store.sharing.revoke("a", "of-ada", "s1", NOON) is True
        assert await self.seen(store, BOB) == ({"of-bob"}, {"of-bob"})
        (share,) = await store.sharing.shares(["of-ada"])
        assert share == make_share(expires=far, revoked=NOON)
        await store.sharing.add(make_share())
        assert "of-ada" in (await self.seen(store, BOB))[0]

    async def test_a_link_is_found_by_its_hash_and_takes_what_it_opened_with_it(self) -> None:
        store = await self.filled()
        link = make_share("l", kind="link", subject="", hash="h")
        await store.sharing.add(link)
        await store.sharing.add(make_share("opened", via="l"))
        assert await store.sharing.link("a", "h") == link
        assert await store.sharing.link("b", "h") is await store.sharing.link("a", "") is None
        assert "of-ada" in (await self.seen(store, BOB))[0]
        assert await store.sharing.revoke("a", "of-ada", "l", NOON) is True
        assert "of-ada" not in (await self.seen(store, BOB))[0]

    async def test_an_author_is_told_and_dismisses_it(self) -> None:
        store = await self.filled()
        notice = make_share(kind="admin", subject=user_subject("olga"), reason="x")
        await store.sharing.add(notice)
        assert await store.sharing.notices("a", "ada") == [notice]
        assert await store.sharing.notices("a", "bob") == await store.sharing.notices("b", "ada") == []
        assert await store.sharing.dismiss("a", "bob", "s1", NOON) is False
        assert await store.sharing.dismiss("a", "ada", "s1", NOON) is True
        assert await store.sharing.notices("a", "ada") == []
        assert await store.sharing.shares(["of-ada"]) == [replace(notice, seen=NOON)]

    async def test_a_temporary_session_is_in_no_list_and_is_due(self) -> None:
        store = await self.filled()
        await store.sharing.set_temporary("a", "of-ada", NOON + 5)
        await store.sharing.set_temporary("a", "of-ada", NOON + 9)
        assert await self.seen(store, ADA) == (set(), set())
        assert await store.search("apple", "a", by="ada") == []
        assert await store.sharing.temporary(["of-ada", "of-bob"]) == {"of-ada": NOON + 5}
        assert await store.sharing.expired(NOON + 4) == []
        assert await store.sharing.expired(NOON + 5) == ["of-ada"]
        await store.sharing.forget_temporary("of-ada")
        assert await store.sharing.expired(NOON + 5) == []

    async def test_what_is_erased_takes_its_shares_with_it(self) -> None:
        store = await self.filled()
        await store.sharing.add(make_share())
        await store.sharing.set_temporary("a", "of-ada", NOON)
        await store.erase("of-ada")
        assert await store.sharing.shares(["of-ada"]) == []
        assert await store.sharing.expired(NOON) == []
