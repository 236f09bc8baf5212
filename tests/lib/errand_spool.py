# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads a receipts spool, written from its description and not from the code that writes it."""

import json
import struct

RECEIPT, GRANT_USED = 1, 2


def crc32c(data):
    """CRC-32C, a bit at a time: RFC 3720, appendix B.4."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


assert crc32c(b"123456789") == 0xe3069283  # the check value that everybody publishes


def read(data):
    """[(kind, object)]; a torn last record is left out, a damaged one is an error."""
    records, at = [], 0
    while len(data) - at >= 16:
        magic, version, kind, size, crc = struct.unpack_from("<4sHHII", data, at)
        if magic != b"ERRS" or version != 1:
            raise ValueError(f"no record at {at}: {data[at:at + 16]!r}")
        payload = data[at + 16:at + 16 + size]
        if len(payload) < size:
            break
        if crc32c(payload) != crc:
            raise ValueError(f"the record at {at} does not match its checksum")
        records.append((kind, json.loads(payload.decode("utf-8"))))
        at += 16 + size
    return records
