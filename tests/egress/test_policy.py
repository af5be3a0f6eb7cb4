"""Addresses that must not be reached, against real listeners that are there to be reached: nobody ever comes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.helpers.loopback_servers import Names, listening, recorded

from everturn.core.rules.urls import Url, parse_url
from everturn.egress import EgressPolicy, FetchLimits, fetch
from everturn.egress.dns import resolve
from everturn.errors import AddressRefused, ConfigError, FetchFailed

SHORT = FetchLimits(total=20, idle=10, connect=10)

# {p} is the port of the listeners, which the guard allows: it is never the port that is refused.
VECTORS = [
    # loopback, plainly
    "http://127.0.0.1:{p}/",
    "http://127.0.0.2:{p}/",
    "http://127.0.0.1.:{p}/",
    "http://localhost:{p}/",
    "http://LOCALHOST:{p}/",
    "http://localhost.:{p}/",
    "http://a.localhost:{p}/",
    "http://0.0.0.0:{p}/",
    "http://[::1]:{p}/",
    "http://[::]:{p}/",
    "http://[0:0:0:0:0:0:0:1]:{p}/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{p}/",
    # numbers in odd forms
    "http://127.1:{p}/",
    "http://127.0.1:{p}/",
    "http://2130706433:{p}/",
    "http://0x7f000001:{p}/",
    "http://0x7f.1:{p}/",
    "http://0x7f.0.0.1:{p}/",
    "http://0x7F.0x0.0x0.0x1:{p}/",
    "http://0177.0.0.1:{p}/",
    "http://017700000001:{p}/",
    "http://0:{p}/",
    "http://00000177.0.0.1:{p}/",
    "http://127.000.000.001:{p}/",
    "http://127.0.0.0x1:{p}/",
    "http://4294967297:{p}/",
    "http://383.0.0.1:{p}/",
    "http://127.0.0.1.0:{p}/",
    "http://0x:{p}/",
    "http://1.2.3.08:{p}/",
    # IPv4 in IPv6
    "http://[::ffff:127.0.0.1]:{p}/",
    "http://[::ffff:7f00:1]:{p}/",
    "http://[::ffff:a9fe:a9fe]:{p}/",
    "http://[::127.0.0.1]:{p}/",
    "http://[::7f00:1]:{p}/",
    "http://[::ffff:0:127.0.0.1]:{p}/",
    "http://[64:ff9b::127.0.0.1]:{p}/",
    "http://[64:ff9b::a9fe:a9fe]:{p}/",
    "http://[64:ff9b:1::7f00:1]:{p}/",
    "http://[2002:7f00:1::]:{p}/",
    "http://[2001::7f00:1]:{p}/",
    "http://[2606:4700::5efe:7f00:1]:{p}/",
    # other inner places
    "http://10.0.0.1:{p}/",
    "http://172.16.0.1:{p}/",
    "http://192.168.0.1:{p}/",
    "http://100.64.0.1:{p}/",
    "http://169.254.169.254:{p}/latest/meta-data/",
    "http://100.100.100.200:{p}/",
    "http://168.63.129.16:{p}/",
    "http://[fd00:ec2::254]:{p}/",
    "http://[fe80::1]:{p}/",
    "http://[fec0::1]:{p}/",
    "http://[fc00::1]:{p}/",
    "http://[ff02::1]:{p}/",
    "http://224.0.0.1:{p}/",
    "http://255.255.255.255:{p}/",
    "http://198.18.0.1:{p}/",
    "http://192.0.2.1:{p}/",
    "http://[2001:db8::1]:{p}/",
    "http://metadata.google.internal:{p}/",
    "http://printer.local:{p}/",
    "http://intranet:{p}/",
    # zones
    "http://[fe80::1%25lo]:{p}/",
    "http://[::1%25lo]:{p}/",
    "http://[::1%lo]:{p}/",
    # readings that differ
    "http://example.com@127.0.0.1:{p}/",
    "http://127.0.0.1:{p}@example.com/",
    "http://user:word@example.com:{p}/",
    "http://@127.0.0.1:{p}/",
    "http://example.com\\@127.0.0.1:{p}/",
    "http://127.0.0.1:{p}\\@example.com/",
    "http:\\\\127.0.0.1:{p}\\",
    "http:/127.0.0.1:{p}/",
    "http:127.0.0.1:{p}/",
    "http:///127.0.0.1:{p}/",
    "//127.0.0.1:{p}/",
    "127.0.0.1:{p}",
    "http://127.0.0.1:{p}:80/",
    "http://127.0.0.1:+{p}/",
    "http://127.0.0.1:0{p}0000/",
    "http://127.0.0.1 :{p}/",
    " http://127.0.0.1:{p}/",
    "http://127.0.0.1:{p}/ ",
    "http://127.0.0.1:{p}/\n",
    "http://127.0.0.1:{p}/a\r\nHost: example.com",
    "ht\ttp://127.0.0.1:{p}/",
    "http://127.0.\t0.1:{p}/",
    "http://localhost\x00.example.com:{p}/",
    "http://localhost%00.example.com:{p}/",
    "http://127.0.0.1%2f@example.com:{p}/",
    "http://%31%32%37.0.0.1:{p}/",
    "http://127%2e0%2e0%2e1:{p}/",
    "http://loc%61lhost:{p}/",
    "http://\uff11\uff12\uff17.0.0.1:{p}/",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460:{p}/",
    "http://127\u30020\u30020\u30021:{p}/",
    "http://loc\u0430lhost:{p}/",
    "http://loca\u00adlhost:{p}/",
    "http://\u2113ocalhost:{p}/",
    "http://\udcff.example.com:{p}/",
    "http://a..example.com:{p}/",
    "http://.example.com:{p}/",
    "http://-a.example.com:{p}/",
    "http://[127.0.0.1]:{p}/",
    "http://[::1:{p}/",
    "http://::1:{p}/",
    "http://[::1]x:{p}/",
    "http://" + "a" * 64 + ".example.com:{p}/",
    "http://" + "a." * 130 + "example.com:{p}/",
    "http://example.com:{p}/" + "a" * 5000,
    # other schemes
    "file:///etc/passwd",
    "file://127.0.0.1:{p}/etc/passwd",
    "ftp://127.0.0.1:{p}/",
    "gopher://127.0.0.1:{p}/_GET",
    "ws://127.0.0.1:{p}/",
    "javascript:fetch('http://127.0.0.1:{p}/')",
    "data:text/html,x",
    "unix:///var/run/docker.sock",
    "jar:http://127.0.0.1:{p}!/",
    "",
    "http://",
    "http://:{p}/",
]


async def to_loopback(host: str) -> Sequence[str]:
    """A resolver in the attacker's hand: whatever is asked for is here."""
    return ["127.0.0.1"]


async def test_every_vector_is_refused_and_nobody_comes_and_nothing_is_looked_up() -> None:
    assert len(set(VECTORS)) == len(VECTORS) >= 60
    async with listening() as listeners:
        guard = EgressPolicy(ports=(80, 443, listeners.port), resolve=to_loopback)
        got_through: list[str] = []
        with recorded() as record:
            for vector in VECTORS:
                try:
                    await fetch(guard, vector.replace("{p}", str(listeners.port)), limits=SHORT)
                except AddressRefused:
                    continue
                except FetchFailed as error:
                    got_through.append(f"{vector}: tried, and {error}")
                else:
                    got_through.append(vector)
        assert (got_through, record, listeners.total) == ([], [], 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "[::1]"])
async def test_the_listeners_are_there_for_whoever_is_allowed(host: str) -> None:
    async with listening() as listeners:
        guard = EgressPolicy(allow=[f"{host}:{listeners.port}"])
        page = await fetch(guard, f"http://{host}:{listeners.port}/", limits=SHORT)
        assert page.body == f"here is {host.strip('[]')}".encode()
        assert listeners.came == {host.strip("[]"): 1}


async def test_an_exception_is_for_its_host_and_port_alone() -> None:
    async with listening() as listeners:
        guard = EgressPolicy(allow=[f"127.0.0.1:{listeners.port}"], ports=(80, 443, listeners.port))
        with pytest.raises(AddressRefused):
            await fetch(guard, f"http://127.0.0.2:{listeners.port}/")
        with pytest.raises(AddressRefused):
            await fetch(guard, f"http://[::1]:{listeners.port}/")
        with pytest.raises(AddressRefused):
            await fetch(guard, "http://127.0.0.1/")
        assert listeners.total == 0


BAD_ANSWERS = [
    ["127.0.0.1"],
    ["::1"],
    ["93.184.216.34", "127.0.0.1"],
    ["127.0.0.1", "93.184.216.34"],
    ["2606:4700:4700::1111", "::1"],
    ["93.184.216.34", "::ffff:127.0.0.1"],
    ["93.184.216.34"] * 40 + ["127.0.0.2"],
    ["93.184.216.34"] * 65,
    ["::ffff:127.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["fe80::1%1"],
    ["::1%lo"],
    ["0.0.0.0"],
    ["::"],
    ["169.254.169.254"],
    ["10.0.0.1"],
    ["not an address"],
    ["93.184.216.34", "127.1"],
    ["127.1"],
    ["localhost"],
]


@pytest.mark.parametrize("answers", BAD_ANSWERS, ids=lambda answers: f"{len(answers)}-{answers[-1]}")
async def test_a_name_with_one_bad_address_is_refused_whatever_its_others(answers: list[str]) -> None:
    async with listening() as listeners:
        guard = EgressPolicy(ports=(listeners.port,), resolve=Names(evil_example_com=[answers]))
        with recorded() as record, pytest.raises(AddressRefused):
            await fetch(guard, f"http://evil.example.com:{listeners.port}/", limits=SHORT)
        assert (record, listeners.total) == ([], 0)


async def test_a_name_is_looked_up_once_and_reached_where_it_was_judged() -> None:
    async with listening() as listeners:
        names = Names(site_example_com=[["127.0.0.1"], ["127.0.0.2"]])
        guard = EgressPolicy(allow=[f"site.example.com:{listeners.port}"], resolve=names)
        with recorded() as record:
            page = await fetch(guard, f"http://site.example.com:{listeners.port}/", limits=SHORT)
        assert page.body == b"here is 127.0.0.1"
        assert names.asked == ["site.example.com"]
        assert record == [("socket.connect", ("127.0.0.1", listeners.port))]
        assert listeners.asked[0][2]["host"] == f"site.example.com:{listeners.port}"


async def test_a_name_that_turns_bad_between_two_fetches_is_refused_at_the_second() -> None:
    async with listening() as listeners:
        names = Names(site_example_com=[["127.0.0.1"], ["169.254.169.254"]])
        guard = EgressPolicy(allow=[f"site.example.com:{listeners.port}"], resolve=names)
        await fetch(guard, f"http://site.example.com:{listeners.port}/", limits=SHORT)
        with pytest.raises(AddressRefused, match="metadata"):
            await fetch(guard, f"http://site.example.com:{listeners.port}/", limits=SHORT)
        assert listeners.total == 1


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "169.254.1.1", "100.100.100.200", "fd00:ec2::254", "224.0.0.1", "0.0.0.0"]
)
async def test_a_name_that_is_an_exception_may_stand_for_a_private_network_but_not_for_its_metadata(
    address: str,
) -> None:
    guard = EgressPolicy(allow=["wiki.corp:443"], resolve=Names(wiki_corp=[[address]]))
    with pytest.raises(AddressRefused):
        await guard.resolve(guard.parse("https://wiki.corp/"))
    guard = EgressPolicy(allow=["wiki.corp:443"], resolve=Names(wiki_corp=[["10.1.2.3", "fd12::1"]]))
    assert [str(found) for found in (await guard.resolve(guard.parse("https://wiki.corp/"))).addresses] == [
        "10.1.2.3",
        "fd12::1",
    ]


async def test_what_is_denied_beats_what_is_allowed() -> None:
    names = Names(a_example_com=[["93.184.216.34"]], b_example_org=[["93.184.216.34"]])
    guard = EgressPolicy(
        allow=["a.example.com:443", "127.0.0.1:80"],
        deny=["*.example.com", "127.0.0.0/8", "93.184.0.0/16"],
        resolve=names,
    )
    for address in ("https://a.example.com/", "https://A.EXAMPLE.com./", "http://127.0.0.1/"):
        with pytest.raises(AddressRefused, match=r"denie[ds]"):
            guard.parse(address)
    with pytest.raises(AddressRefused, match="network"):
        await guard.resolve(guard.parse("https://b.example.org/"))
    assert str(guard.parse("https://example.com/")) == "https://example.com/"


def test_ports_and_schemes_are_those_of_the_guard() -> None:
    with pytest.raises(AddressRefused, match="port 22"):
        EgressPolicy().parse("http://example.com:22/")
    with pytest.raises(AddressRefused, match="there is: https"):
        EgressPolicy(schemes=["https"]).parse("http://example.com/")
    with pytest.raises(AddressRefused, match="port 0"):
        EgressPolicy(ports=[0]).parse("http://example.com:0/")
    with pytest.raises(AddressRefused, match="port 70000"):
        EgressPolicy(ports=[70000]).parse("http://example.com:70000/")


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/a?b=c#d",
        "http://xn--bcher-kva.example/",
        "https://1.1.1.1/",
        "https://[2606:4700:4700::1111]/x",
    ],
)
def test_an_address_out_in_the_open_is_read_as_the_rules_read_it(address: str) -> None:
    assert EgressPolicy().parse(address) == parse_url(address)


async def test_an_address_made_manual_is_read_again() -> None:
    with pytest.raises(AddressRefused):
        await EgressPolicy().resolve(Url("http", "127.0.0.1", "", "/"))
    with pytest.raises(AddressRefused):
        await EgressPolicy(resolve=to_loopback).resolve(Url("http", "a b@c", "", "/"))


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1", "localhost", "http://127.0.0.1:80", "127.0.0.1:0", "127.1:80", "a@b:80", "a:80/x", ":80", "a:x", ""],
)
def test_an_exception_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        EgressPolicy(allow=[text])


@pytest.mark.parametrize("text", ["10.0.0.0/40", "a/b", "", "a b", "http://a", "a:80"])
def test_a_denial_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        EgressPolicy(deny=[text])


def test_a_text_in_the_place_of_a_list_is_refused() -> None:
    with pytest.raises(ConfigError):
        EgressPolicy(allow="127.0.0.1:80")
    with pytest.raises(ConfigError):
        EgressPolicy(schemes=["ftp"])


async def test_a_name_nobody_answers_for_is_given_up_in_time() -> None:
    async def silent(host: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(FetchFailed, match="resolved") as caught:
        await fetch(EgressPolicy(resolve=silent, lookup_timeout=0.05), "https://example.com/")
    assert caught.value.kind == "dns"


@pytest.mark.parametrize("answers", [[], [[]]])
async def test_a_name_without_an_address_is_reported(answers: list[list[str]]) -> None:
    with pytest.raises(FetchFailed, match=r"the host www\.example\.com was not found") as caught:
        await fetch(EgressPolicy(resolve=Names(www_example_com=answers)), "https://www.example.com/")
    assert caught.value.kind == "dns"


async def test_the_machine_itself_resolves_names_to_addresses_that_are_then_judged() -> None:
    assert set(await resolve("localhost")) <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError, match=r".*"):
        await resolve("no-such-name.invalid")
    async with listening() as listeners:
        # An exception lets the name pass; its address is what the machine says.
        page = await fetch(
            EgressPolicy(allow=[f"localhost:{listeners.port}"]), f"http://localhost:{listeners.port}/", limits=SHORT
        )
        assert page.body.startswith(b"here is ")


async def test_lookups_that_nobody_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket
    import threading

    from everturn.egress import dns

    release = threading.Event()
    monkeypatch.setattr(dns, "_places", threading.BoundedSemaphore(2))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])
    guard = EgressPolicy(lookup_timeout=0.05)
    for _ in range(2):
        with pytest.raises(FetchFailed, match="resolved within"):
            await guard.resolve(guard.parse("https://example.com/"))
    with pytest.raises(FetchFailed, match="already"):
        await guard.resolve(guard.parse("https://example.com/"))
    release.set()
