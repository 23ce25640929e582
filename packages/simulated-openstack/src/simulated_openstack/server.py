"""An HTTP/1.1 server for the services, in the event loop of a thread.

It understands what OpenStack's clients send: keep-alive, bodies with a length and bodies in chunks.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from simulated_openstack.http import REASONS, Request, Response

SERVER: Final = "simulated-openstack"
LOOPBACK: Final = "127.0.0.1"  # it checks no TLS and its passwords are public: never another address
MAX_HEAD: Final = 128 * 1024
MAX_BODY: Final = 64 * 1024 * 1024

T = TypeVar("T")
Answer = Callable[[str, Request], Awaitable[Response | None]]  # None: close the connection without an answer


class Server:
    """Listens on a port for each service. `answer` runs in the event loop."""

    def __init__(self, answer: Answer) -> None:
        """Open nothing yet."""
        self._answer = answer
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self, service: str, port: int) -> int:
        """Listen for requests to a service; return the port, a free port for 0."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(service, reader, writer)

        server = await asyncio.start_server(connected, LOOPBACK, port, limit=MAX_HEAD, backlog=1024)
        self._servers.append(server)
        number: int = server.sockets[0].getsockname()[1]
        return number

    async def close(self) -> None:
        """Close all sockets."""
        for server in self._servers:
            server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    async def _serve(self, service: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._exchange(service, reader, writer):
                pass
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # the client is gone, or does not speak HTTP
        finally:
            self._open.discard(writer)
            with contextlib.suppress(OSError):
                writer.close()

    async def _exchange(
        self, service: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request; return whether to wait for another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, version = head[0].split(" ")
        headers = {}
        for line in head[1:-2]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        content = await _body(reader, headers)
        response = await self._answer(service, Request(method, target, headers, content))
        if response is None:
            return False
        keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        writer.write(_encoded(response, head_only=method == "HEAD", keep=keep))
        await writer.drain()
        return keep


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        pieces = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return b"".join(pieces)
    length = int(headers.get("content-length") or 0)
    if length > MAX_BODY:
        raise ValueError("the body is too large")
    return await reader.readexactly(length) if length else b""


def _encoded(response: Response, *, head_only: bool, keep: bool) -> bytes:
    content = response.content
    headers = {"Content-Type": "application/json", **response.headers}
    if response.status != 204:
        headers["Content-Length"] = str(len(content))
    headers |= {"Server": SERVER, "Connection": "keep-alive" if keep else "close"}
    lines = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
    return head if head_only else head + content


class LoopThread:
    """An event loop in its own thread, for a server inside another program."""

    def __init__(self) -> None:
        """Start the thread."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="simulated-cloud", daemon=True)
        self._thread.start()

    def run(self, work: Awaitable[T]) -> T:
        """Run a coroutine in the loop; return its result."""

        async def awaited() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result()

    def stop(self) -> None:
        """End the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
