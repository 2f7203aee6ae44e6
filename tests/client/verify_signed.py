#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Verifies every key and check value of a recorded conversation between a signing initiator and a unit: by the words of
docs/protocol.md, "Security", with Python's own HMAC, apart from the C sources.

    tests/client/verify_signed.py DEVICE_KEY SYSTEM_ID RECORD

DEVICE_KEY and OSD SYSTEM ID are the unit's, in hexadecimal. RECORD has a line of JSON for each command: cdb, out (Data-Out), in (Data-In), sense, all
in hexadecimal, and status. Units that follow one another have the same device key; each begins with the master key that follows
from it. Prints how many values of each kind were verified; ends with 1 at the first one that differs, or when a kind is missing.
"""

import collections
import hmac
import json
import struct
import sys

CAPKEY, CMDRSP, ALLDATA = 1, 2, 3
SET_KEY, CREATE_PARTITION, REMOVE_PARTITION = 0x18, 0x0B, 0x0C
CREATE_CLONE, CREATE_SNAPSHOT = 0x28, 0x29
ROOT_KEY, PARTITION_KEY, WORKING_KEY = 1, 2, 3
EXTENSION_CAPABILITIES = 0xFFEE
CURRENT_COMMAND = 0xFFFFFFFE
# Where things are in a CDB of OSD-1 and of OSD-2: capability, check value, nonce, integrity offsets
# of Data-In and Data-Out.
PLACES = {
    1: {"bytes": 200, "capability": (80, 80), "value": (160, 20), "nonce": 180, "in": 192, "out": 196},
    2: {"bytes": 236, "capability": (80, 104), "value": (184, 32), "nonce": 216, "in": 228, "out": 232},
}

verified = collections.Counter()


def sha1(key, *pieces):
    return hmac.new(key, b"".join(pieces), "sha1").digest()


def cut(data, at, size):
    return bytes(data[at : at + size])


def number(data, at, size):
    return int.from_bytes(cut(data, at, size), "big")


def without(data, *fields):
    """The bytes with zeros in the fields (place, size)."""
    result = bytearray(data)
    for at, size in fields:
        result[at : at + size] = bytes(size)
    return bytes(result)


def offset(version, encoded):
    """A buffer offset: mantissa and exponent, which OSD-2 has signed."""
    exponent = encoded >> 28
    if version == 2 and exponent >= 8:
        exponent -= 16
    return (encoded & 0x0FFFFFFF) << (exponent + 8)


class Wrong(Exception):
    pass


class Command:
    def __init__(self, line):
        for name in ("cdb", "out", "in", "sense"):
            setattr(self, "data_in" if name == "in" else name, bytes.fromhex(line[name]))
        self.status = line["status"]
        action = number(self.cdb, 8, 2)
        self.version = 2 if action & 0x80 or action in (0x8F7C, 0x8F7D) else 1
        # EXECUTE has one number in both versions.
        if action == 0x8F80:
            self.version = 2 if len(self.cdb) == 236 else 1
        self.action = action & 0x7F
        self.places = PLACES[self.version]
        self.capability = cut(self.cdb, *self.places["capability"])
        self.method = self.capability[2] & 0x0F
        self.nonce = cut(self.cdb, self.places["nonce"], 12)
        self.partition = number(self.cdb, 16, 8)

    def kind(self, what):
        return f"{what}, OSD-{self.version}, method {self.method}"

    def expect(self, what, found, value):
        """A field of 20 or 32 bytes: the value at the left, zeros behind it."""
        if found != value + bytes(len(found) - len(value)):
            raise Wrong(f"{self.kind(what)}: {found.hex()} instead of {value.hex()}; CDB {self.cdb.hex()}")
        verified[self.kind(what)] += 1


class Unit:
    def __init__(self, device_key, system_id):
        """A new unit: its master key follows from its device key."""
        self.system_id = system_id
        self.token = None
        self.keys = {
            "master": (
                sha1(device_key, b"muninn initial master authentication key", system_id),
                sha1(device_key, b"muninn initial master generation key", system_id),
            )
        }

    # ---- keys ----

    def set_key(self, command):
        to_set, version = command.cdb[11] & 3, command.cdb[24] & 0x0F
        seed = cut(command.cdb, 32, 20)
        name = {ROOT_KEY: "root", PARTITION_KEY: command.partition, WORKING_KEY: (command.partition, version)}[to_set]
        above = {ROOT_KEY: "master", PARTITION_KEY: "root", WORKING_KEY: command.partition}[to_set]
        generation = self.keys[above][1]
        self.keys[name] = sha1(generation, seed), sha1(generation, seed[:-1] + bytes([seed[-1] ^ 1]))

    def secret(self, command):
        """The authentication key that signs credentials for the command."""
        if command.action == SET_KEY:
            name = {ROOT_KEY: "master", PARTITION_KEY: "root", WORKING_KEY: command.partition}[command.cdb[11] & 3]
        elif command.partition == 0 or command.action in (
            CREATE_PARTITION,
            REMOVE_PARTITION,
            CREATE_CLONE,
            CREATE_SNAPSHOT,
        ):
            name = "root"
        else:
            name = (command.partition, command.capability[1] >> 4)
        return self.keys[name][0]

    # ---- what the initiator sent ----

    def verify_request(self, command, key):
        value = command.places["value"]
        if command.method == CAPKEY:
            command.expect("request", cut(command.cdb, *value), sha1(key, self.token))
        else:
            command.expect("request", cut(command.cdb, *value), sha1(key, without(command.cdb, value)))

    @staticmethod
    def extensions(command, length):
        """Places of the extension capabilities in the continuation segment."""
        at = 40
        while at + 8 <= length:
            kind, pad, size = number(command.out, at, 2), command.out[at + 3] & 7, number(command.out, at + 4, 4)
            if kind == 0:
                break
            if kind == EXTENSION_CAPABILITIES:
                return list(range(at + 8, at + 8 + size, 136))
            at += 8 + size + pad
        return []

    def verify_continuation(self, command, key):
        length = number(command.cdb, 48, 4) if command.version == 2 and self.has_continuation(command) else 0
        if length == 0:
            return 0
        segment = command.out[:length]
        places = self.extensions(command, length)
        cdb = without(command.cdb, command.places["value"])
        zeroed = without(segment, (8, 32), *[(place + 104, 32) for place in places])
        for place in places:
            capability = cut(segment, place, 104)
            secret = self.keys[number(capability, 72, 8), capability[1] >> 4][0]
            own = sha1(secret, capability, self.system_id)
            token = self.token if command.method == CAPKEY else b""
            command.expect("extension capability", cut(segment, place + 104, 32), sha1(own, token, cdb, zeroed))
        if command.method >= CMDRSP:
            command.expect("continuation", cut(segment, 8, 32), sha1(key, command.nonce, without(segment, (8, 32))))
        return length

    @staticmethod
    def has_continuation(command):
        """LIST, LIST COLLECTION, READ MAP and SET KEY use the bytes for other things."""
        return command.action not in (0x03, 0x17, 0x31, SET_KEY)

    @staticmethod
    def verify_data_out(command, key, behind):
        encoded = number(command.cdb, command.places["out"], 4)
        if encoded == 0xFFFFFFFF:
            return
        at = offset(command.version, encoded)
        data, sets, gets = struct.unpack_from(">QQQ", command.out, at)
        get_bytes, get_at, _, _, set_bytes, set_at = struct.unpack_from(">6I", command.cdb, 52)
        if (sets, gets) != (set_bytes, get_bytes):
            raise Wrong(command.kind("lengths of Data-Out"))
        pieces = [cut(command.out, behind, data)]
        pieces.append(cut(command.out, offset(command.version, set_at), sets) if sets else b"")
        pieces.append(cut(command.out, offset(command.version, get_at), gets) if gets else b"")
        size = command.places["value"][1]
        value = sha1(key, command.nonce, cut(command.out, at, 24), *pieces)
        command.expect("Data-Out", cut(command.out, at + 24, size), value)

    # ---- what the unit answered ----

    @staticmethod
    def response_of(command):
        """The value in the current command page, if it is the first attribute that was retrieved; None: it was not asked for."""
        room, encoded = struct.unpack_from(">II", command.cdb, 60)
        if room == 0:
            return None
        answer = command.data_in[offset(command.version, encoded) :]
        head, entry = (8, 16) if command.version == 2 else (4, 10)
        if len(answer) < head + entry or struct.unpack_from(">II", answer, head) != (CURRENT_COMMAND, 1):
            return None
        return cut(answer, head + entry, command.places["value"][1])

    def verify_response(self, command, key):
        if command.status == 0:
            found = self.response_of(command)
            if found is not None:
                command.expect("response, GOOD", found, sha1(key, command.nonce, b"\0"))
            return
        size = command.places["value"][1]
        at = 8
        while at + 2 <= len(command.sense) and command.sense[at] != 7:
            at += 2 + command.sense[at + 1]
        if at + 2 + size > len(command.sense):
            raise Wrong(command.kind("sense data without a value"))
        value = sha1(key, command.nonce, bytes([command.status]), without(command.sense, (at + 2, size)))
        command.expect("response, CHECK CONDITION", cut(command.sense, at + 2, size), value)

    @staticmethod
    def verify_data_in(command, key):
        encoded = number(command.cdb, command.places["in"], 4)
        if encoded == 0xFFFFFFFF or not command.data_in:
            return
        at = offset(command.version, encoded)
        data, gets = struct.unpack_from(">QQ", command.data_in, at)
        retrieved = offset(command.version, number(command.cdb, 64, 4)) if gets else 0
        pieces = cut(command.data_in, 0, data), cut(command.data_in, retrieved, gets)
        value = sha1(key, command.nonce, cut(command.data_in, at, 16), *pieces)
        command.expect("Data-In", cut(command.data_in, at + 16, command.places["value"][1]), value)

    def verify(self, command):
        if command.method == 0:
            return
        key = sha1(self.secret(command), command.capability, self.system_id)
        self.verify_request(command, key)
        behind = self.verify_continuation(command, key)
        if command.method == ALLDATA:
            self.verify_data_out(command, key, behind)
            self.verify_data_in(command, key)
        if command.method >= CMDRSP:
            self.verify_response(command, key)
        if command.action == SET_KEY and command.status == 0:
            self.set_key(command)


def wanted_kinds():
    for version in (1, 2):
        for method in (CAPKEY, CMDRSP, ALLDATA):
            kinds = ["request"]
            if version == 2:
                kinds.append("extension capability")
            if method >= CMDRSP:
                kinds += ["response, GOOD", "response, CHECK CONDITION"] + ["continuation"] * (version == 2)
            if method == ALLDATA:
                kinds += ["Data-Out", "Data-In"]
            for kind in kinds:
                yield f"{kind}, OSD-{version}, method {method}"


def verify_record(path, device_key, system_id):
    unit = Unit(device_key, system_id)
    with open(path, encoding="ascii") as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        cdb = bytes.fromhex(line["cdb"])
        # Vital product data B1: the nexus's token. A new unit gives another one.
        if cdb[0] == 0x12 and cdb[1] & 1 and cdb[2] == 0xB1:
            unit.token = bytes.fromhex(line["in"])[4:20]
        if cdb[0] != 0x7F:
            continue
        command = Command(line)
        if command.action == SET_KEY and command.cdb[11] & 3 == ROOT_KEY:
            token, unit = unit.token, Unit(device_key, system_id)
            unit.token = token
        unit.verify(command)


def main():
    verify_record(sys.argv[3], bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]))
    missing = sorted(set(wanted_kinds()) - set(verified))
    for kind, count in sorted(verified.items()):
        print(f"{count:5}  {kind}")
    if missing:
        sys.exit("never seen: " + "; ".join(missing))


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(str(wrong))
