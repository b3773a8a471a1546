"""Objects over a socket between the server and its processes: pickled, after their length.

Both ends are of one server, and the socket is in a folder that only its user can read.
"""

import asyncio
import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">Q")


def send(connection: socket.socket, value: object) -> None:
    """Send an object."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """Return the next object.

    Raises:
        EOFError: the other end is gone.
    """
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    return pickle.loads(_read(connection, length))


def _read(connection: socket.socket, size: int) -> bytearray:
    """Return the next `size` bytes.

    Raises:
        EOFError: the other end is gone.
    """
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


async def send_async(writer: asyncio.StreamWriter, value: object) -> None:
    """Send an object, as `send` does."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    writer.write(_LENGTH.pack(len(data)) + data)
    await writer.drain()


async def receive_async(reader: asyncio.StreamReader) -> Any:
    """Return the next object, as `receive` does.

    Raises:
        EOFError: the other end is gone.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return pickle.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise EOFError from error
