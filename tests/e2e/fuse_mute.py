# SPDX-License-Identifier: BSD-3-Clause
"""A file system in user space (FUSE) whose one file does not come to the end of a close() until it may."""
import ctypes
import os
import struct
import threading

LOOKUP, FORGET, GETATTR, OPEN, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 18, 25, 26, 36, 42
ENOSYS, MNT_DETACH = 38, 2
libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    mode = 0o040755 if node == 1 else 0o100666
    return struct.pack("=6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Mute:
    """Mounted at `path`, a directory. OSError: FUSE is not available."""

    def __init__(self, path):
        self.path, self.flushes, self.held, self.released = path, 0, [], False
        self.lock = threading.Lock()
        self.dev = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.dev},rootmode=40000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"mute", path.encode(), b"fuse", 6, options.encode()):
            os.close(self.dev)
            raise OSError(ctypes.get_errno(), "mount")
        threading.Thread(target=self.serve, daemon=True).start()
        self.fd = os.open(f"{path}/file", os.O_RDWR | os.O_CLOEXEC)

    def answer(self, unique, body=b"", error=0):
        os.write(self.dev, struct.pack("=IiQ", 16 + len(body), -error, unique) + body)

    def flush(self, unique):
        with self.lock:
            self.flushes += 1
            if not self.released:
                self.held.append(unique)
                return
        self.answer(unique)

    def serve(self):
        while True:
            try:
                got = os.read(self.dev, 1 << 17)
            except OSError:
                return  # unmounted
            _, code, unique, node = struct.unpack_from("=IIQQ", got)
            if code == INIT:
                self.answer(unique, struct.pack("=IIIIHHIIHHI28x", 7, 31, 4096, 0, 8, 6, 4096, 1, 1, 0, 0))
            elif code == LOOKUP:
                self.answer(unique, struct.pack("=QQQQII", 2, 0, 60, 60, 0, 0) + attributes(2))
            elif code == GETATTR:
                self.answer(unique, struct.pack("=QII", 60, 0, 0) + attributes(node))
            elif code == OPEN:
                self.answer(unique, struct.pack("=QII", 1, 0, 0))
            elif code == FLUSH:
                self.flush(unique)
            elif code == RELEASE:
                self.answer(unique)
            elif code not in (FORGET, BATCH_FORGET, INTERRUPT):
                self.answer(unique, error=ENOSYS)

    def close(self):
        """Every close() may end; the file system goes."""
        with self.lock:
            self.released = True
        for unique in self.held:
            self.answer(unique)
        os.close(self.fd)
        libc.umount2(self.path.encode(), MNT_DETACH)
