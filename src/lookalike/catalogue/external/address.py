"""Where an external store is: one line of text, whose secrets are never shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from lookalike.errors import InputError, NotFoundError

Engine: TypeAlias = Literal["postgresql", "milvus"]
DEFAULT_NAME = "lookalike"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_SECRETS = ("password", "token", "sslpassword")
_OWN = ("table", "collection")
HIDDEN = "***"


@dataclass(frozen=True)
class Address:
    """An engine, how to reach it, and the name of the store there.

    `postgresql://user@host:5432/database?table=shop` (whatever else libpq takes may follow, and passwords are best
    left to `PGPASSWORD` or `~/.pgpass`), `milvus:shop.db` (an embedded file), `milvus:https://host:19530?collection=shop`
    (a server or a cluster; `LOOKALIKE_MILVUS_TOKEN` is its token), or `env:NAME`, an environment variable that holds
    one of these.

    >>> place = Address.parse("postgresql://ann:secret@db/shop?table=mugs&sslmode=require")
    >>> place.engine, place.name, str(place)
    ('postgresql', 'mugs', 'postgresql://ann:***@db/shop?sslmode=require&table=mugs')
    """

    engine: Engine
    uri: str = field(repr=False)
    """What the engine's own client takes, secrets included."""
    name: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address.

        Raises:
            InputError: not the address of an engine, or a name an engine would not take.
            NotFoundError: `env:NAME` where no such variable is set.
        """
        if text.startswith("env:"):
            name = text.removeprefix("env:")
            if not os.environ.get(name):
                raise NotFoundError(f"The environment variable {name!r} holds no address.", hint="Set it first.")
            return cls.parse(os.environ[name])
        if text.startswith(("postgresql://", "postgres://")):
            return cls._of("postgresql", text)
        if text.startswith("milvus:"):
            inside = text.removeprefix("milvus:")
            return cls._of("milvus", f"http:{inside}" if inside.startswith("//") else inside)
        raise InputError(
            "That is not the address of an engine.",
            hint="It looks like postgresql://user@host/database?table=shop, milvus:shop.db or milvus:http://host:19530.",
        )

    @classmethod
    def _of(cls, engine: Engine, text: str) -> Address:
        try:
            parts = urlsplit(text)
            password = parts.password
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:  # its own message would repeat the text, secrets and all
            raise InputError(f"The address of {engine} cannot be read.", hint="Percent-encode special signs.") from None
        own = [value for key, value in pairs if key in _OWN]
        name = own[-1] if own else DEFAULT_NAME
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} cannot be the name of a store.", hint="Up to 40 letters, digits and _.")
        secrets = [value for key, value in pairs if key in _SECRETS]
        secrets += [unquote(password), password] if password else []
        rest = urlencode([(key, value) for key, value in pairs if key not in _OWN], quote_via=quote)
        if not parts.scheme:  # the path of a file
            return cls(engine, parts.path, name)
        return cls(engine, urlunsplit(parts._replace(query=rest)), name, tuple(filter(None, secrets)))

    @property
    def embedded(self) -> bool:
        """Whether the store is a file that this process opens itself."""
        return self.engine == "milvus" and "://" not in self.uri

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts its client would ask; none for a file, `?` for one that only a service file names.

        >>> Address.parse("postgresql://db:5433,[::1]/shop?host=/run/pg").hosts
        ('db', '::1', '/run/pg')
        """
        if self.embedded:
            return ()
        parts = urlsplit(self.uri)
        if self.engine == "milvus":
            return (parts.hostname or "",)
        asked = dict(parse_qsl(parts.query))
        listed = [_without_port(each) for each in parts.netloc.rpartition("@")[2].split(",")]
        for key, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR")):
            listed += (asked.get(key) or os.environ.get(variable, "")).split(",")
        if asked.get("service") or os.environ.get("PGSERVICE"):
            listed.append("?")
        return tuple(filter(None, listed))  # libpq, asked for no host, opens a Unix socket or localhost

    def hide(self, text: str) -> str:
        """Return a text, such as an engine's own message, without the secrets of this address."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    def __str__(self) -> str:
        if self.embedded:
            suffix = "" if self.name == DEFAULT_NAME else f"?collection={self.name}"
            return f"milvus:{self.uri}{suffix}"
        parts = urlsplit(self.uri)
        if parts.password is not None:
            user, host = parts.netloc.rpartition("@")[::2]
            parts = parts._replace(netloc=f"{user.partition(':')[0]}:{HIDDEN}@{host}")
        pairs = [(key, HIDDEN if key in _SECRETS else value) for key, value in parse_qsl(parts.query)]
        pairs.append(("table" if self.engine == "postgresql" else "collection", self.name))
        shown = urlunsplit(parts._replace(query=urlencode(pairs, safe="*/", quote_via=quote)))
        return self.hide(shown if self.engine == "postgresql" else f"milvus:{shown}")


def _without_port(host: str) -> str:
    """Take the port off a host of a URI.

    >>> _without_port("db:5432"), _without_port("[::1]:5432"), _without_port("%2Frun%2Fpg")
    ('db', '::1', '/run/pg')
    """
    inside = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return unquote(inside)


def is_address(text: str) -> bool:
    """Tell whether a text names an engine rather than a folder.

    >>> is_address("shop.la"), is_address("milvus:shop.db"), is_address("env:SHOP")
    (False, True, True)
    """
    return text.startswith(("postgresql://", "postgres://", "milvus:", "env:"))
