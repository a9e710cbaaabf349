"""Which part of the network commands may reach: all of it, none, or a list of names."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass

Addresses: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
AnyAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
NetworkSetting: TypeAlias = Literal["on", "off"] | Sequence[str]

_NAME = r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*"
_MOST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Network:
    """`on`, `off` or `list`. In a list `*.example.net` means every name below example.net; private addresses are
    reached only if they are listed themselves."""

    kind: Literal["on", "off", "list"] = "on"
    names: tuple[str, ...] = ()
    addresses: tuple[Addresses, ...] = field(default=())

    def allows_name(self, name: str) -> bool:
        """Whether a name may be connected to; one that is an address must lie in a listed range."""
        if (address := _address(name)) is not None:
            return self.lists_address(address)
        return any(_matches(name, pattern) for pattern in self.names)

    def allows_address(self, name: str, address: AnyAddress) -> bool:
        """Whether a name may lead to an address: a public one, or one that is listed."""
        if self.lists_address(address):
            return True
        inner = _inner(address)
        if name == "localhost":
            return inner.is_loopback
        return inner.is_global and not inner.is_multicast

    def lists_address(self, address: AnyAddress) -> bool:
        inner = _inner(address)
        return any(
            one in listed for listed in self.addresses for one in (address, inner) if one.version == listed.version
        )

    @property
    def description(self) -> str:
        """What holds, for a model or a person."""
        if self.kind != "list":
            return f"network {self.kind}"
        names = [*self.names, *map(str, self.addresses)]
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        return f"network only to {', '.join(names[:_MOST_SHOWN])}{more}"


ON = Network()


def parse_network(setting: NetworkSetting) -> Network:
    """A network by its setting: "on", "off" or names and addresses. Raises InvalidArgument for any other."""
    if isinstance(setting, str):
        if setting in ("on", "off"):
            return Network(setting)
        raise InvalidArgument(f'`network`: {setting!r}; use "on", "off" or a list of names')
    names: list[str] = []
    addresses: list[Addresses] = []
    for text in setting:
        try:
            addresses.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            names.append(_checked(text))
    return Network("list", tuple(names), tuple(addresses))


def _checked(text: str) -> str:
    name = plain_name(text)
    if name is None or not re.fullmatch(_NAME, name):
        raise InvalidArgument(
            f"`network`: {text!r} is not a name; write example.org, *.example.org or an address such as 10.0.0.0/8"
        )
    return name


def plain_name(text: str) -> str | None:
    """A host's name as it is compared: lower case, ASCII, without the final dot. None if it is not one."""
    try:
        ascii_text = text if text.isascii() else text.encode("idna").decode()
    except UnicodeError:
        return None
    name = ascii_text.lower().removesuffix(".")
    return name if name and len(name) < 256 else None


def _matches(name: str, pattern: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern


def _address(name: str) -> AnyAddress | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def _inner(address: AnyAddress) -> AnyAddress:
    """The IPv4 address that an IPv6 one stands for, if it does: mapped, 6to4, Teredo or NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in ipaddress.IPv6Network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
