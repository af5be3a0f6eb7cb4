"""Which IP addresses are out in the open: a table, and what holds for all."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.egress.ip_addresses import classify_address, parse_address

INNER = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "100.64.0.1": "shared",
    "100.127.255.255": "shared",
    "100.100.100.200": "metadata",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "metadata",
    "169.254.0.1": "link-local",
    "169.254.169.254": "metadata",
    "169.254.170.2": "metadata",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.1": "reserved",
    "192.0.0.192": "metadata",
    "192.0.2.1": "documentation",
    "192.88.99.1": "6to4",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.7": "documentation",
    "203.0.113.9": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::2": "IPv4-compatible",
    "::127.0.0.1": "IPv4-compatible",
    "::a9fe:a9fe": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped",
    "::ffff:8.8.8.8": "IPv4-mapped",
    "::ffff:0:7f00:1": "reserved",  # IPv4-translated
    "64:ff9b::7f00:1": "NAT64",
    "64:ff9b::a9fe:a9fe": "NAT64",
    "64:ff9b:1::a00:1": "NAT64",
    "100::1": "reserved",  # to be thrown away
    "2001::7f00:1": "Teredo",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": "Teredo",
    "2001:2::1": "benchmarking",
    "2001:10::1": "reserved",
    "2001:20::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "2002:a9fe:a9fe::1": "6to4",
    "2606:4700::5efe:7f00:1": "ISATAP",
    "2606:4700::200:5efe:a00:1": "ISATAP",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "fc00::1": "unique-local",
    "fd12:3456::1": "unique-local",
    "fd00:ec2::254": "metadata",
    "fd20:ce::254": "metadata",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "2606:4700::1%1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "ff0e::1": "multicast",
}
OPEN = (
    "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 "
    "100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255 "
    "169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 "
    "192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700:4700::1111 "
    "2a00:1450::1 2001:200::1 2001:4860:4860::8888 2003::1 2620:fe::fe "
).split()


@pytest.mark.parametrize(("text", "why"), INNER.items())
def test_what_is_not_out_in_the_open_is_called_what_it_is(text: str, why: str) -> None:
    assert classify_address(ip_address(text)) == why


@pytest.mark.parametrize("text", OPEN)
def test_what_is_out_in_the_open_is_left_alone_up_to_the_edges(text: str) -> None:
    assert classify_address(ip_address(text)) == ""


@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_address_that_python_does_not_call_global_is_let_through(number: int) -> None:
    address = IPv4Address(number)
    assert classify_address(address) or address.is_global


@given(st.integers(0, 2**32 - 1), st.sampled_from(["::", "::ffff:0:0", "64:ff9b::", "64:ff9b:1::", "::ffff:0:0:0"]))
def test_no_ipv4_address_in_the_tail_of_an_ipv6_one_is_let_through(number: int, prefix: str) -> None:
    assert classify_address(IPv6Address(int(IPv6Address(prefix)) | number))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**80 - 1))
def test_no_ipv4_address_in_a_6to4_one_is_let_through(number: int, rest: int) -> None:
    assert classify_address(IPv6Address(0x2002 << 112 | number << 80 | rest))


@given(st.integers(0, 2**128 - 1))
def test_no_ipv6_address_that_python_does_not_call_global_is_let_through(number: int) -> None:
    address = IPv6Address(number)
    assert classify_address(address) or address.is_global


@pytest.mark.parametrize("text", ["", "localhost", "0x7f.1", "127.1", "017.0.0.1", "1.2.3.4 ", "[1.2.3", "2130706433"])
def test_only_the_plain_form_is_read(text: str) -> None:
    assert parse_address(text) is None
