"""Runs a program as on an older kernel. usage: lacks.py SYSCALL[,SYSCALL...]|SO_BUF_LOCK PROGRAM ARGUMENT...

What is named is refused by a filter of seccomp(2): a call with ENOSYS, the option with ENOPROTOOPT, as a kernel that never had it does.
"""

import ctypes
import errno
import os
import struct
import sys

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
# The numbers are the same on all machines since pidfd_send_signal; those of getsockopt and setsockopt are x86-64's and arm64's.
CALLS = {"pidfd_open": [434], "pidfd_getfd": [438]}
OPTIONS = {"x86_64": [54, 55], "aarch64": [208, 209]}[os.uname().machine]
SO_BUF_LOCK = 72
NUMBER, THIRD = 0, 16 + 2 * 8  # offsets in struct seccomp_data


def refused(number, error):
    return [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]


rules = []
if sys.argv[1] == "SO_BUF_LOCK":
    for number in OPTIONS:
        rules += [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 3, number), (LOAD, 0, 0, THIRD), (EQUAL, 0, 1, SO_BUF_LOCK)]
        rules += [(RETURN, 0, 0, ERRNO | errno.ENOPROTOOPT)]
else:
    for name in sys.argv[1].split(","):
        for number in CALLS[name]:
            rules += refused(number, errno.ENOSYS)
rules += [(RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
program = Program(len(rules), ctypes.addressof(code))
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[2], sys.argv[2:])
