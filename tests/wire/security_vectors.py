#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Known answers for tests/wire/test_security_vectors.c, computed from docs/protocol.md, "Security", with Python's own HMAC
and numbers, apart from the C sources.

    tests/wire/security_vectors.py            prints tests/wire/security_vectors.h
    tests/wire/security_vectors.py --check    ends with 1 when the file has others
    tests/wire/security_vectors.py --write    writes it
"""

import hmac
import pathlib
import struct
import sys

HEADER = pathlib.Path(__file__).resolve().with_suffix(".h")

# RFC 3526, group 14: 2^2048 - 2^1984 - 1 + 2^64 * (floor(2^1918 pi) + 124476).
PRIME_2048 = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AACAA68FFFFFFFFFFFFFFFF",
    16,
)


def pattern(length, start):
    return bytes((start + 7 * i) % 256 for i in range(length))


def sha1(key, *pieces):
    return hmac.new(key, b"".join(pieces), "sha1").digest()


SECRET = pattern(20, 1)
SYSTEM_ID = pattern(20, 50)
TOKEN = pattern(16, 90)
NONCE = bytes.fromhex("018bcfe56800") + pattern(6, 3)
SEED = pattern(20, 200)
DEVICE_KEY = pattern(32, 11)


def capability(version):
    """Read, write and get attributes of object 10005 in partition 10000, key version 5, ALLDATA."""
    head = struct.pack(">BBBB", version, 5 << 4 | 1, 3, 0) + (0x018BCFE56FFF).to_bytes(6, "big") + pattern(20, 31)
    head += pattern(12, 77) + (0x018BCFE56801).to_bytes(6, "big") + bytes([0x80, 0xE0, 0, 0, 0, 0, 0, 1 << 4])
    if version == 1:
        return head + struct.pack(">IQQ4x", 0x01020304, 0x10000, 0x10005)
    return head + struct.pack(">IIH6xQQQQ", 0, 0x01020304, 9, 0x10000, 0x10005, 4096, 512)


def cdb(version):
    """READ of 16 bytes at 512, all security fields but the check value."""
    head = bytearray(80)
    head[0] = 0x7F
    head[7] = 0xC0 if version == 1 else 0xE4
    head[8:12] = bytes([0x88, 0x05 if version == 1 else 0x85, 0x00, 0x30])
    head[16:32] = struct.pack(">QQ", 0x10000, 0x10005)
    at = 36 if version == 1 else 32
    head[at : at + 16] = struct.pack(">QQ", 16, 512)
    head[56:60] = head[64:68] = head[72:76] = b"\xff\xff\xff\xff"
    offsets = (0x00000001, 0xFFFFFFFF) if version == 1 else (0xB0000002, 0xFFFFFFFF)
    return bytes(head) + capability(version) + bytes(20 if version == 1 else 32) + NONCE + struct.pack(">II", *offsets)


def sense(version):
    """ILLEGAL REQUEST, 24/00, with a response check value of zeros."""
    size = 20 if version == 1 else 32
    return bytes([0x72, 5, 0x24, 0, 0, 0, 0, size + 2, 7, size]) + bytes(size)


def extended_segment():
    """Of COPY USER OBJECTS: a source, two extension capabilities without their check values, and a descriptor behind them."""
    source = bytes([1, 1, 0, 6]) + struct.pack(">IQQ", 18, 0x10000, 0x10005) + bytes([0x80, 0]) + bytes(6)
    extensions = bytes([0xFF, 0xEE, 0, 0]) + struct.pack(">I", 272) + (capability(2) + bytes(32)) * 2
    behind = bytes([0, 0, 0, 0]) + struct.pack(">I", 0)
    return bytes([1, 0, 0x88, 0x93]) + bytes(36) + source + extensions + behind


def vectors():
    for version in (1, 2):
        key = sha1(SECRET, capability(version), SYSTEM_ID)
        yield f"capability_{version}", capability(version)
        yield f"cdb_{version}", cdb(version)
        yield f"capability_key_{version}", key
        yield f"token_value_{version}", sha1(key, TOKEN)
        yield f"request_value_{version}", sha1(key, cdb(version))
        yield f"response_good_{version}", sha1(key, NONCE, b"\x00")
        yield f"response_check_condition_{version}", sha1(key, NONCE, b"\x02", sense(version))
        padding = bytes(0 if version == 1 else 12)
        out_numbers = struct.pack(">QQQ", 5, 24, 16)
        out_value = sha1(key, NONCE, out_numbers, pattern(5, 1), pattern(24, 2), pattern(16, 3))
        yield f"data_out_{version}", out_numbers + out_value + padding
        in_numbers = struct.pack(">QQ", 16, 32)
        in_value = sha1(key, NONCE, in_numbers, pattern(16, 4), pattern(32, 5))
        yield f"data_in_{version}", in_numbers + in_value + padding
    # A segment of 48 bytes: format 1, READ, and one descriptor head of zeros.
    segment = bytes([1, 0, 0x88, 0x85]) + bytes(44)
    yield "continuation_value", sha1(SECRET, NONCE, segment)
    yield "extended_segment", extended_segment()
    yield "extension_value", sha1(SECRET, cdb(2), extended_segment())
    yield "extension_token_value", sha1(SECRET, TOKEN, cdb(2), extended_segment())
    yield "derived_authentication", sha1(SECRET, SEED)
    yield "derived_generation", sha1(SECRET, SEED[:-1] + bytes([SEED[-1] ^ 1]))
    yield "initial_authentication", sha1(DEVICE_KEY, b"muninn initial master authentication key", SYSTEM_ID)
    yield "initial_generation", sha1(DEVICE_KEY, b"muninn initial master generation key", SYSTEM_ID)
    mine, theirs = (int.from_bytes(pattern(64, start), "big") for start in (21, 42))
    yield "dh_public", pow(2, theirs, PRIME_2048).to_bytes(256, "big")
    yield "dh_shared", pow(2, mine * theirs, PRIME_2048).to_bytes(256, "big")
    yield "dh_prime", PRIME_2048.to_bytes(256, "big")


def text():
    lines = [
        "/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */",
        "/* Made by tests/wire/security_vectors.py --write; not to be edited. */",
        "/* clang-format off */",
    ]
    for name, value in vectors():
        lines.append(f"static const uint8_t vector_{name}[{len(value)}] = {{")
        for at in range(0, len(value), 16):
            lines.append("\t" + " ".join(f"0x{byte:02x}," for byte in value[at : at + 16]))
        lines.append("};")
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--write"]:
        HEADER.write_text(text(), encoding="utf-8")
    elif sys.argv[1:] == ["--check"]:
        sys.exit(0 if HEADER.read_text(encoding="utf-8") == text() else f"{HEADER} is old; run {sys.argv[0]} --write")
    else:
        print(text(), end="")


if __name__ == "__main__":
    main()
