# SPDX-License-Identifier: BSD-3-Clause
"""http_server.py ADDRESS PORT: serves its own source to one client by HTTP, through whatever the C library's socket calls are. Python's own
accept() is accept4(), which Debian's librspreload.so does not know."""
import ctypes
import pathlib
import re
import socket
import sys

libc = ctypes.CDLL(None)


def accept(listener):
    fd = libc.accept(listener.fileno(), None, None)
    if fd < 0:
        sys.exit("accept failed")
    return socket.socket(fileno=fd)


def read_request(client):
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        got = client.recv(4096)
        if not got:
            sys.exit("the request has no end")
        text += got
    return re.match(rb"GET (\S+) HTTP", text)[1].decode()


def main():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((sys.argv[1], int(sys.argv[2])))
    listener.listen(5)
    client = accept(listener)
    path = read_request(client)
    body = pathlib.Path(__file__).read_bytes() * 1000
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body))
    client.sendall(body)
    client.shutdown(socket.SHUT_WR)
    if client.recv(1):
        sys.exit("there is more than a request")
    client.close()
    listener.close()
    print(f"served {path}")


main()
