# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A secured partition over the daemon: muninnctl with keyring and credentials; and an initiator that signs by itself
(hmac of Python's library), which shares no code with the target."""

import filecmp
import hmac
import json
import os
import struct
import time
import unittest

import osd
from harness import E2ETest, noise
from trees import describe, differences, make_tree, without_set_id_bits

SANITIZED = True

PARTITION, OBJECT = 0x10000, 0x10004
ADDRESS = f"{PARTITION:#x}/{OBJECT:#x}"
CAPKEY, CMDRSP, ALLDATA = 1, 2, 3
NONCE_NOT_UNIQUE, NONCE_TIMESTAMP_OUT_OF_RANGE = 0x2406, 0x2407
BAD_DATA_OUT = 0x260F
CHECK_VALUE = 184, 216  # of an OSD-2 CDB; 216: nonce
RESPONSE_VALUE = (osd.CURRENT_COMMAND, 1)


def sha1(key, *pieces):
    return hmac.new(key, b"".join(pieces), "sha1").digest()


class Credential:
    """From what `muninnctl key mint` prints."""

    def __init__(self, text):
        found = json.loads(text)
        self.method = {"capkey": CAPKEY, "cmdrsp": CMDRSP, "alldata": ALLDATA}[found["method"]]
        self.capability = bytes.fromhex(found["capability"])
        self.key = bytes.fromhex(found["key"])


class Signed:
    """An OSD-2 command, signed by CMDRSP or ALLDATA as docs/protocol.md says."""

    def __init__(self, credential, action, data=b"", length=0, address=0, nonce=None):
        self.key = credential.key
        self.alldata = credential.method == ALLDATA
        self.nonce = nonce or int(time.time() * 1000).to_bytes(6, "big") + os.urandom(6)
        self.command = osd.Command(
            action, PARTITION, OBJECT, length=length, address=address, data=data, gets=[RESPONSE_VALUE]
        )
        self.data_bytes = len(data)
        self.command.cdb[80:184] = credential.capability
        self.command.cdb[216:228] = self.nonce
        struct.pack_into(">II", self.command.cdb, 228, 0xFFFFFFFF, 0xFFFFFFFF)
        if self.alldata:
            self._seal()
        self.sign()

    def _seal(self):
        command = self.command
        get_bytes, get_at = struct.unpack_from(">II", command.cdb, 52)
        gets = command.data_out[(get_at & 0xFFFFFFF) * 8 :][:get_bytes]
        numbers = struct.pack(">QQQ", self.data_bytes, 0, get_bytes)
        value = sha1(self.key, self.nonce, numbers, command.data_out[: self.data_bytes], gets)
        at = osd.round_up(len(command.data_out), 8)
        command.data_out = command.data_out.ljust(at, b"\0") + numbers + value + bytes(12)
        struct.pack_into(">I", command.cdb, 232, osd.offset_of(2, at))
        self.in_at = osd.round_up(command.read_length, 8)
        struct.pack_into(">I", command.cdb, 228, osd.offset_of(2, self.in_at))
        command.read_length = self.in_at + 48

    def sign(self):
        cdb = self.command.cdb
        cdb[184:216] = bytes(32)
        cdb[184:204] = sha1(self.key, cdb)

    def verify(self, test, answer):
        """What the target says is what the key says."""
        if answer.status == osd.GOOD:
            test.assertEqual(answer.attributes[RESPONSE_VALUE][:20], sha1(self.key, self.nonce, b"\0"))
        else:
            sense = bytearray(answer.task.sense)
            at = sense.index(answer.sense.descriptors[7]) + 2
            value = bytes(sense[at : at + 20])
            sense[at : at + 32] = bytes(32)
            test.assertEqual(value, sha1(self.key, self.nonce, bytes([answer.status]), sense))
        if self.alldata and answer.task.received > self.in_at:
            room = answer.task.room
            numbers, value = bytes(room[self.in_at :][:16]), bytes(room[self.in_at + 16 :][:20])
            data, gets = struct.unpack(">QQ", numbers)
            retrieved = self.command.retrieved
            pieces = bytes(room[:data]), bytes(room[retrieved : retrieved + gets])
            test.assertEqual(value, sha1(self.key, self.nonce, numbers, *pieces))
            test.assertEqual(data, self.command.data_length)

    def run(self, session):
        return self.command.run(session)


class Security(E2ETest):
    def setUp(self):
        folder = self.folder()
        os.chmod(folder, 0o700)
        self.keyring = os.path.join(folder, "unit.keys")
        self.device_key = os.path.join(folder, "device.key")
        self.ctl("key", "create", self.device_key)
        self.device = self.daemon(
            config=f"[lun 1]\ntype = osd\nsize = 256M\nkey_file = {self.device_key}\n",
        ).start()
        self.url = self.device.url()

    def secure(self, method):
        """A partition with an object in it that is secured; its keys are in the keyring."""
        self.ctl("mkpart", self.url, hex(PARTITION))
        self.ctl("put", self.url, ADDRESS, stdin=b"0123456789" * 1000)
        self.ctl("key", "init", self.url, self.device_key, "--key", self.keyring)
        for key in (["root"], [hex(PARTITION)], [hex(PARTITION), "--key-version", "2"]):
            self.ctl("key", "set", self.url, *key, "--key", self.keyring, "--name", "first")
        self.ctl("key", "method", self.url, hex(PARTITION), method)

    def mint(self, *options):
        return self.ctl("key", "mint", self.keyring, ADDRESS, *options)

    def signed(self, *arguments, **options):
        return self.ctl(*arguments, "--key", self.keyring, **options)

    def test_a_keyring_opens_what_is_closed_to_others(self):
        self.secure("alldata")
        refused = self.try_ctl("cat", self.url, ADDRESS)
        self.assertEqual(refused.returncode, 7)
        self.assertIn(b"needs a credential", refused.stderr)
        self.assertEqual(self.signed("cat", self.url, ADDRESS), "0123456789" * 1000)
        shown = json.loads(self.signed("key", "show", self.url, hex(PARTITION), "--json"))
        self.assertEqual(shown, {"method": "alldata", "partition": "first", "working_2": "first"})

    def test_info_leaves_out_what_is_live_where_partitions_may_not_be_listed(self):
        self.secure("alldata")
        self.ctl("key", "set", self.url, "root", "--key-version", "0", "--key", self.keyring)
        credential = os.path.join(os.path.dirname(self.keyring), "root")
        with open(credential, "w", encoding="ascii") as file:
            file.write(self.ctl("key", "mint", self.keyring, "0", "--permissions", "get"))
        os.chmod(credential, 0o600)
        self.ctl("key", "method", self.url, "0", "capkey", "--key", self.keyring)
        self.assertIn("used  ", self.ctl("info", self.url, "--credential", credential))
        self.assertNotIn("live  ", self.ctl("info", self.url, "--credential", credential))
        self.assertIn("live  ", self.signed("info", self.url))

    def test_a_tree_goes_in_and_out_of_a_secured_partition(self):
        self.secure("alldata")
        source, back = self.folder("tree"), os.path.join(self.folder("tree"), "back")
        make_tree(source, 300, 4 << 20)
        self.signed("import", self.url, hex(PARTITION), source)
        self.signed("export", self.url, hex(PARTITION), back)
        self.assertEqual(differences(without_set_id_bits(describe(source)), describe(back)), [])

    def test_time_travel_is_signed_and_brings_no_old_keys_back(self):
        self.secure("alldata")
        self.assertEqual(self.signed("snapshot", self.url, hex(PARTITION)), "1\n")
        self.ctl("key", "set", self.url, hex(PARTITION), "--key-version", "2", "--key", self.keyring)
        self.signed("rm", self.url, ADDRESS)
        self.assertEqual(self.signed("cat", self.url, ADDRESS + "@1"), "0123456789" * 1000)
        self.signed("rollback", self.url, hex(PARTITION), "1")
        self.assertEqual(self.signed("cat", self.url, ADDRESS), "0123456789" * 1000)
        self.assertEqual(self.try_ctl("cat", self.url, ADDRESS).returncode, 7)

    def test_a_new_partition_with_the_number_of_one_that_is_gone_shows_nothing_of_it(self):
        """The root has no method, so anybody can roll the device back."""
        before = self.ctl("snapshot", self.url, "0").strip()
        self.secure("alldata")
        then = self.ctl("snapshot", self.url, "0").strip()
        self.ctl("rollback", self.url, "0", before)
        self.ctl("mkpart", self.url, hex(PARTITION))
        refused = self.try_ctl("cat", self.url, f"{ADDRESS}@{then}")
        self.assertEqual(refused.returncode, 7)
        self.assertIn(b"needs a credential", refused.stderr)
        self.assertEqual(self.signed("cat", self.url, f"{ADDRESS}@{then}"), "0123456789" * 1000)

    def test_keys_outlive_a_restart_and_old_ones_are_dead(self):
        self.secure("cmdrsp")
        old = self.keyring + ".old"
        with open(self.keyring, "rb") as now, open(os.open(old, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as copy:
            copy.write(now.read())
        self.ctl("key", "set", self.url, hex(PARTITION), "--key-version", "2", "--key", self.keyring)
        self.assertFalse(filecmp.cmp(old, self.keyring, shallow=False))
        self.device.restart()
        self.assertEqual(self.signed("cat", self.url, ADDRESS), "0123456789" * 1000)
        refused = self.try_ctl("cat", self.url, ADDRESS, "--key", old)
        self.assertEqual(refused.returncode, 7)
        self.assertIn(b"made with another key", refused.stderr)
        # The master key in both keyrings is the same; the exchange makes another one.
        self.ctl("key", "set", self.url, "master", "--key", self.keyring)
        self.assertEqual(self.try_ctl("key", "set", self.url, "root", "--key", old).returncode, 7)
        self.ctl("key", "set", self.url, "root", "--key", self.keyring)

    def test_a_keyring_is_good_where_nothing_is_secured_too(self):
        self.secure("nosec")
        self.assertEqual(self.signed("cat", self.url, ADDRESS), "0123456789" * 1000)
        self.assertIn(hex(PARTITION), self.signed("ls", self.url))
        self.signed("mkpart", self.url, "0x20000")
        self.signed("put", self.url, "0x20000/0x10000", stdin=b"unsigned")
        self.assertEqual(self.ctl("cat", self.url, "0x20000/0x10000"), "unsigned")
        # A keyring whose keys are old: the target can't sign with them.
        old = self.keyring + ".old"
        with open(self.keyring, "rb") as now, open(os.open(old, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as copy:
            copy.write(now.read())
        self.ctl("key", "set", self.url, hex(PARTITION), "--key-version", "2", "--key", self.keyring)
        refused = self.try_ctl("cat", self.url, ADDRESS, "--key", old)
        self.assertEqual(refused.returncode, 11)
        self.assertIn(b"leave --key out", refused.stderr)
        self.assertIn(b"another key", refused.stderr)

    def test_collections_are_signed_as_what_they_are(self):
        self.secure("alldata")
        made = self.signed("coll", "create", self.url, hex(PARTITION)).strip()
        self.signed("attr", "set", self.url, made, "0xF0000010", "1", "shelf")
        self.assertIn("shelf", self.signed("attr", "get", self.url, made, "0xF0000010", "1"))
        self.assertIn("shelf", self.signed("attr", "ls", self.url, made))
        path = os.path.join(self.folder(), "credential")
        for options, code in ((["--collection"], 0), ([], 7)):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
                file.write(self.ctl("key", "mint", self.keyring, made, *options))
            shown = self.try_ctl("attr", "get", self.url, made, "0xF0000010", "1", "--credential", path)
            self.assertEqual(shown.returncode, code)

    def test_what_is_copied_is_read_with_a_right_of_its_own(self):
        self.secure("alldata")
        copy = self.signed("cp", self.url, ADDRESS, hex(PARTITION)).strip()
        self.assertEqual(self.signed("cat", self.url, copy), "0123456789" * 1000)
        self.assertEqual(self.signed("clone", self.url, hex(PARTITION), "0x20000", "--read-only").strip(), "0x20000")
        snapshot = f"0x20000/{OBJECT:#x}"
        self.assertEqual(self.try_ctl("cat", self.url, snapshot, "--key", self.keyring).returncode, 7)
        self.assertEqual(self.signed("cat", self.url, snapshot, "--key-of", hex(PARTITION)), "0123456789" * 1000)
        self.assertIn(b"needs a credential", self.try_ctl("cp", self.url, ADDRESS, hex(PARTITION)).stderr)
        # Into a partition with other keys; a credential for the new object alone is not enough.
        self.signed("mkpart", self.url, "0x30000")
        for key in (["0x30000"], ["0x30000", "--key-version", "2"]):
            self.ctl("key", "set", self.url, *key, "--key", self.keyring)
        self.ctl("key", "method", self.url, "0x30000", "alldata")
        copy = self.signed("cp", self.url, ADDRESS, "0x30000").strip()
        self.assertEqual(self.signed("cat", self.url, copy), "0123456789" * 1000)
        path = os.path.join(self.folder(), "credential")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(self.ctl("key", "mint", self.keyring, "0x30000/0x20000", "--permissions", "all"))
        refused = self.try_ctl("cp", self.url, ADDRESS, "0x30000/0x20000", "--credential", path)
        self.assertEqual(refused.returncode, 7)
        self.assertIn(b"does not permit", refused.stderr)

    def test_a_credential_is_for_one_object_and_what_it_permits(self):
        self.secure("capkey")
        path = os.path.join(self.folder(), "credential")
        for method in ("capkey", "cmdrsp", "alldata"):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
                file.write(self.mint("--permissions", "read,get", "--security", method))
            self.assertEqual(self.ctl("cat", self.url, ADDRESS, "--credential", path), "0123456789" * 1000)
            refused = self.try_ctl("append", self.url, ADDRESS, "--credential", path, stdin=b"more")
            self.assertEqual(refused.returncode, 7)
            self.assertIn(b"does not permit", refused.stderr)
            self.assertEqual(self.try_ctl("ls", self.url, hex(PARTITION), "--credential", path).returncode, 7)

    def test_an_initiator_of_its_own_agrees_about_every_value(self):
        self.secure("cmdrsp")
        for method in ("cmdrsp", "alldata"):
            credential = Credential(self.mint("--permissions", "read,write,get", "--security", method))
            with self.device.session() as session:
                data = noise(50000, 3)
                write = Signed(credential, osd.WRITE, data=data, address=7)
                answer = write.run(session)
                self.assertEqual(answer.status, osd.GOOD, answer.sense)
                write.verify(self, answer)
                read = Signed(credential, osd.READ, length=len(data), address=7)
                answer = read.run(session)
                self.assertEqual(answer.status, osd.GOOD, answer.sense)
                self.assertTrue(answer.data == data)
                read.verify(self, answer)
                # What is refused, too.
                wrong = Signed(credential, osd.APPEND, data=b"not allowed")
                answer = wrong.run(session)
                self.assertEqual(answer.sense.field, 129)
                wrong.verify(self, answer)

    def test_nothing_changed_or_repeated_on_the_way_is_executed(self):
        self.secure("alldata")
        credential = Credential(self.mint("--permissions", "read,write,get"))
        with self.device.session() as session:
            once = Signed(credential, osd.WRITE, data=b"once")
            self.assertEqual(once.run(session).status, osd.GOOD)
            self.assertEqual(once.run(session).sense.code, NONCE_NOT_UNIQUE)
            changed = Signed(credential, osd.WRITE, data=b"changed")
            changed.command.data_out = b"C" + changed.command.data_out[1:]
            self.assertEqual(changed.run(session).sense.code, BAD_DATA_OUT)
            moved = Signed(credential, osd.WRITE, data=b"moved")
            moved.command.cdb[47] ^= 4
            self.assertEqual(moved.run(session).sense.field, 184)
            late = int((time.time() - 3600) * 1000).to_bytes(6, "big") + os.urandom(6)
            self.assertEqual(
                Signed(credential, osd.WRITE, data=b"late", nonce=late).run(session).sense.code,
                NONCE_TIMESTAMP_OUT_OF_RANGE,
            )
            unsigned = osd.Osd(session).run(osd.WRITE, PARTITION, OBJECT, data=b"unsigned")
            self.assertEqual(unsigned.sense.field, 80)
        self.assertEqual(self.signed("cat", self.url, ADDRESS), "once456789" + "0123456789" * 999)

    def test_behind_a_restart_only_those_wait_who_had_dated_requests_ahead(self):
        self.secure("cmdrsp")

        def read(credential, seconds_ahead):
            nonce = int((time.time() + seconds_ahead) * 1000).to_bytes(6, "big") + os.urandom(6)
            return Signed(credential, osd.READ, length=1, nonce=nonce)

        def kill_and_start():
            self.device.kill()
            self.device.start()

        for number, restart in enumerate((kill_and_start, self.device.restart)):
            hasty, other = (Credential(self.mint("--expires", str(1000 + 2 * number + i))) for i in range(2))
            captured = read(hasty, 55)
            with self.device.session() as session:
                self.assertEqual(captured.run(session).status, osd.GOOD)
            restart()
            with self.device.session() as session:
                # Later than all that had the time of the clock, long before what was dated ahead.
                self.assertEqual(read(other, 5).run(session).status, osd.GOOD)
                self.assertEqual(captured.run(session).sense.code, NONCE_TIMESTAMP_OUT_OF_RANGE)
                self.assertEqual(read(hasty, 5).run(session).sense.code, NONCE_TIMESTAMP_OUT_OF_RANGE)

    def test_wrong_uses_of_keys_are_told_apart(self):
        self.secure("capkey")
        loose = self.keyring + ".loose"
        with open(loose, "w", encoding="ascii") as file:
            file.write("{}")
        os.chmod(loose, 0o644)
        for code, message, arguments in (
            (2, b"needs --key", ["set", self.url, "root"]),
            (2, b"is no security method", ["method", self.url, hex(PARTITION), "strong"]),
            (2, b"a number from 0 to 15", ["set", self.url, hex(PARTITION), "--key-version", "16", "--key", self.keyring]),
            (2, b"at most 7 bytes", ["set", self.url, "root", "--name", "too long", "--key", self.keyring]),
            (2, b"'fly' is no permission", ["mint", self.keyring, ADDRESS, "--permissions", "read,fly"]),
            (2, b"one of the two", ["show", self.url, "--key", self.keyring, "--credential", self.keyring]),
            (3, b"the key above", ["set", self.url, "0x20000", "--key-version", "1", "--key", self.keyring]),
            (3, b"no working key", ["mint", self.keyring, "0x20000/0x10000"]),
            (4, b"there is a keyring already", ["init", self.url, self.device_key, "--key", self.keyring]),
            (4, b"File exists", ["create", self.device_key]),
            (9, b"others than its owner", ["show", self.url, "--key", loose]),
            (9, b"No such file", ["show", self.url, "--key", loose + ".not"]),
            (9, b"64 hexadecimal digits", ["init", self.url, self.keyring, "--key", loose]),
        ):
            with self.subTest(arguments=arguments):
                done = self.try_ctl("key", *arguments)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.returncode, code)

    def test_without_the_device_key_the_partition_stays_closed(self):
        self.secure("cmdrsp")
        self.device.stop()
        with open(self.device.config_path, "w", encoding="utf-8") as file:
            file.write("[lun 1]\ntype = osd\nsize = 256M\n")
        self.device.start()
        refused = self.try_ctl("cat", self.url, ADDRESS, "--key", self.keyring)
        self.assertEqual(refused.returncode, 7)
        self.assertIn(b"no such key, or cannot decrypt", refused.stderr)
        os.chmod(self.device_key, 0o644)
        with open(self.device.config_path, "w", encoding="utf-8") as file:
            file.write(f"[lun 1]\ntype = osd\nsize = 256M\nkey_file = {self.device_key}\n")
        self.device.stop()
        code, errors = self.device.run()
        self.assertEqual(code, 1)
        self.assertIn("others than its owner can use this key", errors)


if __name__ == "__main__":
    unittest.main()
