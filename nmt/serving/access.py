"""Who may translate, and how much: API keys, and limits of requests and characters."""

import hashlib
import hmac
import ipaddress
import math
import os
import re
import secrets
import shlex
import shutil
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from nmt.errors import ConfigError
from nmt.recipe import strict_yaml
from nmt.recipe.config import Section
from nmt.recipe.config_file import parse_section, read_yaml_file
from nmt.serving.answers import RequestError
from nmt.serving.settings import ServerSettings

MINUTE = 60.0
DAY = 86_400
MAX_CLIENTS = 100_000
"""clients whose use is remembered; the one that asked least recently is forgotten"""


class ApiKey(Section):
    """An entry of the file of keys; the key itself is not stored."""

    name: str = Field(min_length=1)
    """whom the key was given to; the log names it"""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the key; a key is random, so that nobody can guess it from this"""
    requests_per_minute: int | None = Field(None, ge=1)
    """null: the server's limit"""
    characters_per_day: int | None = Field(None, ge=1)
    """null: the server's limit"""
    memories: list[str] | None = None
    """names of the translation memories that requests with this key search and add to"""


class KeyFile(Section):
    """The file of keys."""

    keys: list[ApiKey] = []


@dataclass
class _Use:
    """What a client has used."""

    minute: float
    """when `requests` was computed, in seconds of `time.monotonic`"""
    requests: float = 0.0
    """requests of the last minute, of which older ones count less and less"""
    day: int = 0
    """the day of `characters`, counted from 1970"""
    characters: int = 0
    """characters of the day"""


class Access:
    """Admits or refuses clients; it remembers what each of them has used."""

    def __init__(self, settings: ServerSettings) -> None:
        """Read the file of keys.

        Raises:
            ConfigError: the file is missing or has mistakes.
        """
        self._settings = settings
        self._uses: OrderedDict[str, _Use] = OrderedDict()
        self._keys: list[ApiKey] = []
        self._read_at = 0.0  # when the file of keys was last read, in seconds of `time.time`
        self.stale: str | None = None
        """why the file of keys cannot be read now, so that a withdrawn key may still be valid"""
        self.reload()

    def reload(self) -> None:
        """Read the file of keys again.

        Raises:
            ConfigError: the file is missing or has mistakes; the keys stay as they are.
        """
        if self._settings.keys:
            try:
                keys = read_keys(Path(self._settings.keys)).keys
                self._check_memories(keys)
                self._keys = keys
            except ConfigError as error:
                self.stale = str(error)
                raise
            self._read_at, self.stale = time.time(), None

    def _check_memories(self, keys: Sequence[ApiKey]) -> None:
        """Raise a ConfigError if a key may use a memory that the server does not have."""
        served = self._settings.memories
        for key in keys:
            for name in key.memories or ():
                if name not in served:
                    raise ConfigError(
                        f"{self._settings.keys}: the key of '{key.name}' names the memory "
                        f"{name!r}, and this server has {', '.join(served) or 'none'}; correct the "
                        "name, or add the memory to `memories`"
                    )

    @property
    def stale_seconds(self) -> float:
        """For how long the file of keys could not be read; 0 if it can."""
        return time.time() - self._read_at if self.stale else 0.0

    @property
    def needs_key(self) -> bool:
        """Whether only those who have a key may translate."""
        return self._settings.keys is not None

    def admit(self, address: str, key: str | None, characters: int) -> str:
        """Return the name of a client that may translate so many characters now.

        Raises:
            RequestError: the key is missing or unknown, or a limit is reached, or the request
                alone exceeds that of a day.
        """
        settings = self._settings
        requests, daily = settings.requests_per_minute, settings.characters_per_day
        name = f"address {client_network(address)}"
        if self.needs_key:
            known = self._find(key)
            name = f"key {known.name}"
            # a key without a limit of its own has the server's
            requests = known.requests_per_minute or requests
            daily = known.characters_per_day or daily
        if requests or daily:
            self._count(name, requests, daily, characters)
        return name

    def check_key(self, key: str | None) -> None:
        """Check a key, if keys are needed.

        Raises:
            RequestError: the key is missing or unknown.
        """
        if self.needs_key:
            self._find(key)

    def name_of_key(self, key: str | None) -> str | None:
        """Return the name of the client with a key, as `admit` does; None if keys are not needed.

        Raises:
            RequestError: the key is missing or unknown.
        """
        return f"key {self._find(key).name}" if self.needs_key else None

    def memories_of(self, key: str | None) -> list[str]:
        """Return the names of the memories that a client with this key may use.

        Raises:
            RequestError: the key is missing or unknown.
        """
        if self.needs_key:
            return self._find(key).memories or []
        return list(self._settings.memories)

    def _find(self, key: str | None) -> ApiKey:
        """Return the known key that a client has sent.

        Raises:
            RequestError: the key is missing or unknown.
        """
        if not key:
            raise RequestError(403, "this server needs an API key: ask its operator for one")
        digest = hash_of(key)
        found = None
        for known in self._keys:  # all of them, so that the time does not tell which one is near
            if hmac.compare_digest(known.sha256, digest):
                found = known
        if found is None:
            raise RequestError(403, "the API key is not known to this server")
        return found

    def _count(self, name: str, requests: int | None, daily: int | None, characters: int) -> None:
        """Count a request of the client `name`, unless it exceeds one of its limits.

        `requests` are the requests that are allowed in a minute, and `daily` the characters in a
        day; None or 0: any number.

        Raises:
            RequestError: the request exceeds a limit; it is not counted.
        """
        if daily and characters > daily:  # no other day would help
            raise RequestError(
                413,
                f"the request has {characters} characters, and {daily} a day are allowed; send it "
                "in parts on several days",
            )
        now, today = time.monotonic(), int(time.time() // DAY)
        use = self._uses.pop(name, None) or _Use(now)
        self._uses[name] = use
        if len(self._uses) > MAX_CLIENTS:
            self._uses.popitem(last=False)
        rate = requests or 0
        left = max(0.0, use.requests - (now - use.minute) / MINUTE * rate)
        use.requests = min(left, rate)  # of an earlier limit there may be more
        use.minute = now
        if use.day != today:
            use.day, use.characters = today, 0
        if requests and use.requests + 1 > requests:
            wait = math.ceil((use.requests + 1 - requests) / requests * MINUTE)
            raise RequestError(
                429,
                f"Slowdown: {requests} requests a minute are allowed; try again in {wait} s",
                {"Retry-After": str(wait)},
            )
        if daily and use.characters + characters > daily:
            rest = DAY - int(time.time()) % DAY
            raise RequestError(
                429,
                f"{daily} characters a day are allowed, and {use.characters} are used; the next "
                "day begins at midnight UTC",
                {"Retry-After": str(rest)},
            )
        use.requests += 1
        use.characters += characters


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """Return the key in the header `Authorization: Bearer KEY`; None: there is no such header."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else None


def client_network(address: str) -> str:
    """Return what one client owns: an IPv4 address, or all IPv6 addresses with the first 64 bits.

    An IPv4 address that is written as IPv6, such as ::ffff:192.0.2.1, counts as IPv4 (RFC 4291,
    2.5.5.2). A text that is not an address, which a proxy may send, stays as it is.
    """
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False))


def hash_of(key: str) -> str:
    """Return the SHA-256 of a key in hexadecimal digits."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> KeyFile:
    """Read a file of keys.

    Raises:
        ConfigError: the file is missing, unreadable or has mistakes; the message has line and key.
    """
    try:
        is_there = path.is_file()
    except OSError as error:  # of a folder above it
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if not is_there:
        command = f"nmt serve --keys {shlex.quote(str(path))} --add-key NAME"
        raise ConfigError(f"{path}: no such file of API keys; add a key: {command}")
    no_options: dict[str, object] = {}  # none of `nmt serve` replaces a key of this file
    return parse_section(KeyFile, read_yaml_file(path), str(path), no_options)


def add_key(path: Path, name: str) -> str:
    """Make a new key, append its hash to a file of keys, and return the key.

    Raises:
        ConfigError: the file has mistakes, or a key of this name; or the name is no readable text.
    """
    if not name.strip() or not name.isprintable():
        raise ConfigError(
            f"{name!r} is no name for an API key: expected printable characters, such as the "
            "name of whom it is for"
        )
    path = path.resolve()  # a link stays one
    keys = read_keys(path).keys if path.exists() else []
    if name in [key.name for key in keys]:
        raise ConfigError(f"{path}: has a key of '{name}'; choose another name, or delete that one")
    key = secrets.token_urlsafe(32)  # of 32 random bytes
    keys = [*keys, ApiKey(name=name, sha256=hash_of(key))]
    entries = [each.model_dump(exclude_none=True) for each in keys]
    _replace_file(path, _appended(path, entries[-1]) or strict_yaml.dump({"keys": entries}))
    return key


def _appended(path: Path, entry: Mapping[str, object]) -> str | None:
    """Return a file of keys with one more entry; comments stay. None: the file is not in blocks."""
    if not path.exists():
        return None
    before = path.read_text("utf-8").rstrip() + "\n"
    dash = re.search(r"^( *)- ", before, re.MULTILINE)
    if not dash:
        return None
    rows = strict_yaml.dump([entry]).splitlines()
    text = before + "".join(f"{dash[1]}{row}\n" for row in rows)
    try:
        found, _lines = strict_yaml.parse(text, str(path))
    except ConfigError:
        return None
    old, _lines = strict_yaml.parse(before, str(path))
    is_same = isinstance(found, dict) and isinstance(old, dict)
    return text if is_same and found == {**old, "keys": [*old["keys"], entry]} else None


def _replace_file(path: Path, text: str) -> None:
    """Replace a file; mode and owner stay, so that the service which reads it still can.

    A new file is for its owner alone.

    Raises:
        ConfigError: this user may not write in the folder, or may not keep the owner of the file.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            owner = path.stat()
            shutil.copystat(path, new)
            os.chown(new, owner.st_uid, owner.st_gid)
            os.utime(new)  # `copystat` has copied the old time of change, too
        new.replace(path)
    except PermissionError as error:
        raise ConfigError(
            f"{path}: cannot be written so that its owner stays: {error.strerror}; add the key as "
            "its owner or as root"
        ) from error
    finally:
        new.unlink(missing_ok=True)
