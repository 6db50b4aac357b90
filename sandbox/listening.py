"""The HTTP server: loopback only, a thread and a connection a call. Speaks sockets.

Kept connections would save a tenth of a millisecond a call here; werkzeug, which moto needs
anyway, closes each, and so never takes an unread body for the next request.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


def listen(app: App, port: int = 0) -> BaseWSGIServer:
    """A server on that loopback port (0: any free one); `serve_forever` answers.

    Raises OSError when the port is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(256)
        return make_server(
            "127.0.0.1",
            listening.getsockname()[1],
            app,
            threaded=True,
            request_handler=_Handler,
            fd=listening.fileno(),
        )
    finally:
        listening.close()  # make_server has a duplicate


def hang_up(environ: Environ) -> None:
    """Ends the connection: the client gets no answer."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # clients ask before they send large bodies (Expect)
    disable_nagle_algorithm = True

    def log_request(self, *_: Any) -> None:
        """Calls are counted, not logged: they may hold secrets."""

    def address_string(self) -> str:
        return str(self.client_address[0])
