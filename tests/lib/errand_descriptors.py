# SPDX-License-Identifier: LGPL-2.1-or-later
"""Connections of a process that runs, reached from outside: it does not know what hit it."""

import contextlib
import ctypes
import os
import socket
import stat

import errand_launch

PIDFD_GETFD = 438  # kernel 5.6
NUMBERS = 256      # more than a test's errandd or broker has
SO_ACCEPTCON = 0x10000  # <linux/net.h>, the flags in /proc/net/unix
LIBC = ctypes.CDLL(None, use_errno=True)


def duplicate(pidfd, fd):
    copy = LIBC.syscall(PIDFD_GETFD, pidfd, fd, 0)
    if copy < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return copy


@contextlib.contextmanager
def opened(pid):
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def connection(pid, path, own=False):
    """Of that process to the socket whose path ends so, or, own, which it has accepted there: its number and a copy of it, (number, socket); None: there
    is none."""
    with opened(pid) as pidfd:
        for number in range(NUMBERS):  # an ordinary account may copy them, and not list those of a process that is not dumpable
            try:
                copy = duplicate(pidfd, number)
            except OSError:
                continue
            if not stat.S_ISSOCK(os.fstat(copy).st_mode):
                os.close(copy)
                continue
            copy = socket.socket(fileno=copy)
            with contextlib.suppress(OSError):
                other = copy.getpeername()  # there is none of one that listens
                if copy.family == socket.AF_UNIX and str(copy.getsockname() if own else other).endswith(path):
                    return number, copy
            copy.close()
    return None


def listens(path):
    """Whether a socket that was bound to a path that ends so is listened at: it has its file before, and may still look for that."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        return any(words[-1].endswith(path) and int(words[3], 16) & SO_ACCEPTCON for words in map(str.split, list(f)[1:]))


def wait_connection(pid, path, own=False):
    found = []

    def look():
        found.extend(filter(None, [connection(pid, path, own)]))
        return found
    errand_launch.wait_for(look)
    return found[0]


def break_connection(pid, path, notices=True):
    """The one that is there, or comes. notices: and waits until the process has closed it."""
    _, copy = wait_connection(pid, path)
    broken = os.fstat(copy.fileno()).st_ino
    copy.shutdown(socket.SHUT_RDWR)
    copy.close()

    def open_still():
        found = connection(pid, path)
        if not found:
            return False
        with found[1]:
            return os.fstat(found[1].fileno()).st_ino == broken
    if notices:
        errand_launch.wait_for(lambda: not open_still())
