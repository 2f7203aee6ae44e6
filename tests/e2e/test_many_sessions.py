# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A thousand sessions one after the other, and many commands: the service takes no more for them in the end.

E2E_COMMANDS=1000000 makes it as many commands as that; the suite takes fewer.
"""

import os
import time
import unittest

from harness import IQN, LIMIT_SECONDS, noise
from iscsi import Session
from service import HOST, POOL, ServiceTest

TIME_LIMIT_SECONDS = 1800
SESSIONS = 1000
COMMANDS = int(os.environ.get("E2E_COMMANDS", "20000"))
AT_ONCE = 32
# The end of fixed sense data: THIN PROVISIONING SOFT THRESHOLD REACHED.
FILLS = bytes([0x38, 0x07]) + bytes(4)
GROWTH_MAX = 8 << 20  # of a process, behind a first part that fills caches


class ManySessions(ServiceTest):
    @staticmethod
    def descriptors(process):
        return len(os.listdir(f"/proc/{process}/fd"))

    @staticmethod
    def memory(process):
        with open(f"/proc/{process}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:"))

    def until_closed(self, process, descriptors):
        """tgtd closes a socket when it has seen the end of it."""
        limit = time.monotonic() + LIMIT_SECONDS
        while self.descriptors(process) > descriptors:
            self.assertLess(time.monotonic(), limit, "descriptors stay open")

    def assert_constant(self, daemon, work, before, after):
        """`work` does a part, then all of it, and takes nothing for that."""
        processes = (daemon.tgtd_pid, daemon.process.pid)
        work(before)
        self.units(daemon)
        descriptors = [self.descriptors(process) for process in processes]
        memory = [self.memory(process) for process in processes]
        work(after)
        self.units(daemon)
        for process, opened, taken in zip(processes, descriptors, memory):
            self.until_closed(process, opened)
            self.assertLess(self.memory(process) - taken, GROWTH_MAX)

    def test_a_thousand_logins_take_nothing(self):
        daemon = self.serve()

        def log_in_and_out(times):
            for number in range(times):
                session = Session(daemon.port, IQN, 2, name=f"{HOST}{number % 10}")
                self.assertEqual(session.run(bytes(6)).status & ~2, 0)
                # Half of them say nothing when they go.
                if number % 2:
                    session.logout()
                session.close()

        self.assert_constant(daemon, log_in_and_out, 200, SESSIONS)
        self.assertEqual(self.admin(daemon, "session", "ls"), {"sessions": []})
        self.assertEqual(daemon.stop(), 0)

    def test_many_commands_take_nothing(self):
        daemon = self.serve()
        disk = self.attach(daemon, 2, name=HOST)
        session, data = disk.session, noise(4096, 1)
        read = bytes([0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0])
        write = bytes([0x2A, 0, 0, 0, 0, 0, 0, 0, 8, 0])

        def work(commands):
            for _ in range(0, commands, AT_ONCE):
                tasks = [session.submit(write, data) if n % 4 == 0 else session.submit(read, b"", 4096) for n in range(AT_ONCE)]
                session.wait(*tasks)
                # A device that fills with history says so now and then, instead of an answer.
                told = [task for task in tasks if task.status]
                self.assertTrue(all(task.sense.endswith(FILLS) for task in told), [task.sense.hex() for task in told])

        # Of many commands the first half fills the device and begins to merge: memory, once.
        self.assert_constant(daemon, work, COMMANDS // 2, COMMANDS)
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
