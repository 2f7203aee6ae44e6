# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Task management and lost connections, with commands in the module's hands: each command completes exactly once, and the
unit works on."""

import os
import random
import time
import unittest

import osd
from harness import IQN, LIMIT_SECONDS, SMALL_ROWS, E2ETest, noise
from osd import GOOD, Command, Osd, Sense
from tasks import (
    ABORT_TASK,
    ABORT_TASK_SET,
    FUNCTION_COMPLETE,
    FUNCTION_REJECTED,
    HEAD_OF_QUEUE,
    LOGICAL_UNIT_RESET,
    NO_SUCH_TASK,
    ORDERED,
    SIMPLE,
    TASK_ABORTED,
    Session,
)

SANITIZED = True

P = O = 0x10000
COMMANDS = 48
DATA = bytes(range(256)) * 128  # goes with the command, so that all of them are in the module at once
FUA = 0x08  # in the options of a command
# Of PERFORM TASK MANAGEMENT FUNCTION: functions, service responses.
OSD_ABORT_TASK, OSD_ABORT_TASK_SET, OSD_CLEAR_TASK_SET, OSD_LOGICAL_UNIT_RESET = 0x01, 0x02, 0x04, 0x08
OSD_QUERY_TASK, OSD_QUERY_TASK_SET = 0x80, 0x81
COMPLETE, SUCCEEDED = 0x00, 0x05


class Inquiry:
    """Standard INQUIRY."""

    @staticmethod
    def submit(session):
        return session.submit(bytes([0x12, 0, 0, 0, 36, 0]), read_length=36)


class Tasks(E2ETest):
    def setUp(self):
        self.shared = self.daemon(size="256M").start()

    def login(self):
        session = Session(self.shared.port, IQN)
        self.addCleanup(session.close)
        return session

    def prepared(self):
        """A session, the unit on it, and many writes under way."""
        session = self.login()
        device = Osd(session)
        device.create_partition(P)
        device.create(P, O)
        writes = [Command(osd.WRITE, P, O, address=len(DATA) * i, data=DATA) for i in range(COMMANDS)]
        return session, device, [write.submit(session) for write in writes]

    def assert_works(self, session, device):
        session.until_ready()
        device.write(P, O, 0, b"still here")
        self.assertEqual(device.read(P, O, 0, 10), b"still here")

    def test_a_reset_of_the_unit_waits_for_its_commands(self):
        session, device, tasks = self.prepared()
        self.assertEqual(session.manage(LOGICAL_UNIT_RESET), FUNCTION_COMPLETE)
        session.wait(*tasks)
        self.assert_works(session, device)

    def test_a_reset_is_told_to_every_session_that_has_been_there(self):
        """The one unit attention that tgtd keeps for a session: that of its login is taken away, not that of a reset."""
        session, other = self.login(), self.login()
        for at in (session, other):
            self.assertEqual(at.run(bytes(6)).status, GOOD)
        self.assertEqual(session.manage(LOGICAL_UNIT_RESET), FUNCTION_COMPLETE)
        for at in (session, other):
            task = at.run(bytes(6))
            self.assertEqual((task.status, Sense(task.sense).code), (osd.CHECK_CONDITION, 0x2900))
            self.assertEqual(at.run(bytes(6)).status, GOOD)

    def test_an_aborted_task_set_is_answered_when_its_commands_have_ended(self):
        session, device, tasks = self.prepared()
        self.assertEqual(session.manage(ABORT_TASK_SET), FUNCTION_COMPLETE)
        session.wait(*tasks)
        self.assert_works(session, device)

    def test_an_aborted_command_still_ends_once(self):
        session, device, tasks = self.prepared()
        tag = session.tag_of(tasks[-1])
        # Too late for a command that has begun: then the answer is that it does not exist (any
        # more).
        self.assertIn(session.manage(ABORT_TASK, tag), (FUNCTION_COMPLETE, NO_SUCH_TASK))
        session.wait(*tasks)
        self.assert_works(session, device)

    def abort_many(self, managing, function):
        """Writes are done or aborted, and their data tells the same. What waits behind an ORDERED command is with tgtd."""
        session, device, tasks = self.prepared()
        session.attribute = ORDERED
        behind = range(COMMANDS, 2 * COMMANDS)
        for i in behind:
            tasks.append(Command(osd.WRITE, P, O, address=len(DATA) * i, data=DATA).submit(session))
            session.attribute = SIMPLE
        self.assertEqual((managing or session).perform(function), (GOOD, COMPLETE))
        session.wait(*tasks)
        statuses = [task.status for task in tasks]
        for task in tasks:
            # A command that comes after the others were cleared tells of that.
            if task.status not in (GOOD, TASK_ABORTED):
                self.assertEqual(osd.Sense(task.sense).key, osd.UNIT_ATTENTION)
        session.until_ready()
        device.set_length(P, O, len(DATA) * len(tasks))
        for i, status in enumerate(statuses):
            expected = DATA if status == GOOD else bytes(len(DATA))
            self.assertEqual(device.read(P, O, len(DATA) * i, len(DATA)), expected, i)
        device.must(osd.REMOVE, P, O)
        device.must(osd.REMOVE_PARTITION, P)

    def test_commands_aborted_by_an_osd_command_are_not_executed_and_say_so(self):
        """How many are aborted is a matter of speed, and may be none. HeldTasks has some that surely wait."""
        for _ in range(10):
            self.abort_many(None, OSD_ABORT_TASK_SET)

    def test_a_session_can_clear_the_tasks_of_another(self):
        managing = self.login()
        managing.until_ready()
        for _ in range(10):
            self.abort_many(managing, OSD_CLEAR_TASK_SET)
        self.abort_many(managing, OSD_LOGICAL_UNIT_RESET)

    def test_a_task_is_found_by_its_initiator_task_tag(self):
        session, device, tasks = self.prepared()
        tag = session.tag_of(tasks[-1])
        self.assertIn(session.perform(OSD_QUERY_TASK, tag)[1], (COMPLETE, SUCCEEDED))
        self.assertEqual(session.perform(OSD_ABORT_TASK, tag), (GOOD, COMPLETE))
        session.wait(*tasks)
        self.assertIn(tasks[-1].status, (GOOD, TASK_ABORTED))
        self.assertTrue(all(task.status == GOOD for task in tasks[:-1]))
        self.assertEqual(session.perform(OSD_QUERY_TASK, tag), (GOOD, COMPLETE))
        self.assertEqual(session.perform(OSD_QUERY_TASK_SET), (GOOD, COMPLETE))
        self.assert_works(session, device)

    def test_connections_lost_with_commands_under_way_leave_the_unit_whole(self):
        session, _, _ = self.prepared()
        session.close()
        for _ in range(10):
            session = self.login()
            for i in range(COMMANDS):
                session.attribute = ORDERED if i % 16 == 8 else SIMPLE
                Command(osd.WRITE, P, O, address=len(DATA) * i, data=DATA).submit(session)
            session.close()
        session = self.login()
        self.assert_works(session, Osd(session))
        # Nothing of what was lost is still counted as active: the unit closes.
        self.assertEqual(self.shared.stop(), 0, self.shared.errors)

    def test_other_sessions_are_told_of_a_format_once(self):
        formatting, told, told_by_test_unit_ready = (self.login() for _ in range(3))
        for session in (formatting, told, told_by_test_unit_ready):
            session.until_ready()
            Osd(session).must(osd.GET_ATTRIBUTES)
        Osd(formatting).must(osd.FORMAT_OSD)
        Osd(formatting).create_partition(P)
        refused = Osd(told).run(osd.REMOVE_PARTITION, P)
        self.assertEqual((refused.status, refused.sense.key, refused.sense.code), (0x02, 0x6, 0x2800))
        Osd(told).create(P, O)
        ready = told_by_test_unit_ready.run(bytes(6))
        self.assertEqual((ready.status, osd.Sense(ready.sense).code), (0x02, 0x2800))
        self.assertEqual(told_by_test_unit_ready.run(bytes(6)).status, GOOD)
        self.assertEqual(Osd(told_by_test_unit_ready).list(P), [O])

    def test_ordered_commands_wait_for_what_was_sent_before(self):
        session, device, tasks = self.prepared()
        session.attribute = ORDERED
        ordered = Command(osd.READ, P, O, length=len(DATA) * COMMANDS)
        answer = ordered.answer(session.wait(ordered.submit(session)))
        self.assertEqual(answer.status, GOOD)
        self.assertEqual(answer.data, DATA * COMMANDS)
        session.wait(*tasks)

    def test_sessions_that_change_one_object_at_once_lose_nothing(self):
        """Data, attributes and a number of one object are changed by three sessions, with tags of every kind."""
        rounds = 120
        sessions = [self.login() for _ in range(3)]
        for session in sessions:
            session.until_ready()
        device = Osd(sessions[0])
        device.create_partition(P)
        device.create(P, O)
        tasks = []
        for i in range(rounds):
            for number, session in enumerate(sessions):
                session.attribute = (SIMPLE, ORDERED, HEAD_OF_QUEUE)[(i + number) % 3]
                name = (0x10000 + number, i + 1, b"set by %d" % number)
                command = (
                    Command(osd.APPEND, P, O, data=b"0123456789", sets=[name]),
                    Command(osd.SET_ATTRIBUTES, P, O, sets=[name, (0x20000, 1, b"%d" % i)]),
                    Command(osd.FETCH_AND_ADD, P, O, length=8, data=(1).to_bytes(8, "big"), sets=[name]),
                )[number]
                if number == 2:
                    command.read_length = 8
                tasks.append((session, command.submit(session)))
        for session in sessions:
            session.wait(*(task for owner, task in tasks if owner is session))
            session.attribute = SIMPLE
        refused = [repr(osd.Sense(task.sense)) for _, task in tasks if task.status != GOOD]
        self.assertEqual(refused, [])
        # Each addition has found another number.
        found = sorted(int.from_bytes(task.room[:8], "big") for owner, task in tasks if owner is sessions[2])
        self.assertEqual(found, list(range(rounds)))
        self.assertEqual(device.length(P, O), 10 * rounds)
        self.assertEqual(device.read(P, O, 0, 10 * rounds), b"0123456789" * rounds)
        for number in range(3):
            wanted = [(0x10000 + number, i + 1) for i in range(rounds)]
            answer = device.must(osd.GET_ATTRIBUTES, P, O, gets=wanted)
            self.assertEqual(set(answer.attributes.values()), {b"set by %d" % number})

    def test_numbers_that_commands_find_follow_their_order(self):
        """Each command adds to one number, so what it finds says when it was executed."""
        rounds, sessions = 200, [self.login() for _ in range(3)]
        for session in sessions:
            session.until_ready()
        device = Osd(sessions[0])
        device.create_partition(P)
        device.create(P, O)
        drawn = random.Random(6)
        sent = {session: [] for session in sessions}
        for _ in range(rounds):
            for session in sessions:
                session.attribute = drawn.choices((SIMPLE, ORDERED, HEAD_OF_QUEUE), (4, 1, 1))[0]
                command = Command(osd.FETCH_AND_ADD, P, O, length=8, data=(1).to_bytes(8, "big"))
                command.read_length = 8
                sent[session].append((session.attribute, command.submit(session)))
        found = []
        for session, tasks in sent.items():
            session.wait(*(task for _, task in tasks))
            numbers = [int.from_bytes(task.room[:8], "big") for _, task in tasks]
            found += numbers
            for i, (attribute, task) in enumerate(tasks):
                self.assertEqual(task.status, GOOD)
                if attribute == ORDERED:
                    self.assertGreater(numbers[i], max(numbers[:i], default=-1))
                    behind = [numbers[j] for j in range(i + 1, rounds) if tasks[j][0] != HEAD_OF_QUEUE]
                    self.assertLess(numbers[i], min(behind, default=3 * rounds))
        self.assertEqual(sorted(found), list(range(3 * rounds)))

    def test_a_write_whose_data_is_on_its_way_has_not_come_yet(self):
        """tgtd hands a command over when it has all of its data; until then nothing finds it or waits for it."""
        session = self.login()
        device = Osd(session)
        device.create_partition(P)
        device.create(P, O)
        device.write(P, O, 0, b"before")
        writing = Command(osd.WRITE, P, O, data=bytes(1 << 18)).submit(session)
        self.assertEqual(session.manage(ABORT_TASK, session.tag_of(writing)), NO_SUCH_TASK)
        self.assertEqual(session.wait(writing).status, GOOD)
        self.assertEqual(device.read(P, O, 0, 6), bytes(6))

    def test_a_stop_with_commands_under_way_finishes_them(self):
        _, _, tasks = self.prepared()
        self.assertEqual(len(tasks), COMMANDS)
        self.assertEqual(self.shared.stop(), 0, self.shared.errors)
        self.assertTrue(any("everything is stable" in line for line in self.shared.errors), self.shared.errors)


CONFIG = SMALL_ROWS + "threads = {threads}\n"
LARGE = O + 1  # nearly all of it is on the flash, as rows are small
LARGE_DATA = noise(1 << 21, 1)
# Reading the large object takes 512 times as long; all other commands of a test are there long
# before.
PAGE_READ = "8ms"
HELD_SECONDS = 2.5


class HeldTasks(E2ETest):
    """The flash is so slow that reading the large object holds a thread, and what is sent meanwhile has not begun."""

    @classmethod
    def setUpClass(cls):
        cls.holder = cls()
        cls.addClassCleanup(cls.holder.doCleanups)
        cls.daemons = {}  # by number of threads; the tests share them

    def login(self, daemon):
        session = Session(daemon.port, IQN)
        self.addCleanup(session.close)
        return session

    def slow_daemon(self, threads):
        """One with the large object, whose flash has become slow."""
        daemon = self.daemon(config=CONFIG.format(threads=threads))
        device = Osd(self.login(daemon.start()))
        device.create_partition(P)
        device.store(P, LARGE, LARGE_DATA)
        device.create(P, O)
        limit = time.monotonic() + LIMIT_SECONDS
        self.ctl("nand", "timing", daemon.image(), f"none,mode=real,read={PAGE_READ},channels=1,dies=1")
        begun = ended = time.monotonic()
        while ended - begun < HELD_SECONDS:  # the daemon looks twice a second
            begun = time.monotonic()
            device.read(P, LARGE, 0, len(LARGE_DATA))
            ended = time.monotonic()
            self.assertLess(begun, limit, "the flash never became slow")
        return daemon

    def held(self, threads, attribute=SIMPLE, daemon=None):
        """A session, the unit on it, and the task that reads the large object. Object O holds "nothing"."""
        if not daemon:
            if threads not in self.daemons:
                self.daemons[threads] = self.holder.slow_daemon(threads)
            daemon = self.daemons[threads]
        session = self.login(daemon)
        device = Osd(session)
        device.write(P, O, 0, b"nothing")
        for _ in range(10):
            begun = time.monotonic()
            reading = self.submit(session, attribute, Command(osd.READ, P, LARGE, length=len(LARGE_DATA)))
            if threads > 1 and attribute == SIMPLE:
                for _ in range(5):  # threads take them behind it
                    session.wait(self.submit(session, SIMPLE, Command(osd.READ, P, O, length=7, options=FUA)))
            if time.monotonic() - begun < HELD_SECONDS / 2:
                break
            # A thread of the unit waited to write, and whoever read waited behind it.
            session.wait(reading)
        session.ended.clear()
        return session, device, reading

    @staticmethod
    def submit(session, attribute, command):
        """`command`: a Command, or the CDB of one without data."""
        session.attribute = attribute
        task = session.submit(command) if isinstance(command, bytes) else command.submit(session)
        session.attribute = SIMPLE
        return task

    def write(self, session, attribute, text):
        return self.submit(session, attribute, Command(osd.WRITE, P, O, data=text))

    def write_on_thread(self, session, text, attribute=SIMPLE):
        """Waits for a thread, as it has to wait for the host's storage (FUA): it is not tried at once."""
        return self.submit(session, attribute, Command(osd.WRITE, P, O, data=text, options=FUA))

    def read(self, session, attribute):
        """Does not need the flash: on a thread of its own it ends at once."""
        return self.submit(session, attribute, Command(osd.READ, P, O, length=7))

    def assert_ended(self, session, *tasks):
        """All, and well; these in this order."""
        session.wait(*session.tasks.values(), *tasks)
        self.assertEqual([tasks.index(task) for task in session.ended if task in tasks], list(range(len(tasks))))
        self.assertEqual([task.status for task in tasks], [GOOD] * len(tasks))

    def test_head_of_queue_overtakes_what_has_not_begun(self):
        session, device, reading = self.held(threads=1)
        first = self.write_on_thread(session, b"first..")
        second = self.write_on_thread(session, b"second.")
        head = self.write_on_thread(session, b"head...", HEAD_OF_QUEUE)
        self.assert_ended(session, head, first, second)
        self.assert_ended(session, reading, first)
        self.assertEqual(bytes(reading.room), LARGE_DATA)
        self.assertEqual(device.read(P, O, 0, 7), b"second.")

    def test_ordered_waits_for_what_came_before(self):
        session, _, reading = self.held(threads=4)
        # It does not need the flash: on a thread of its own it would end first.
        ordered = self.submit(session, ORDERED, Command(osd.READ, P, O, length=7))
        self.assert_ended(session, reading, ordered)
        self.assertEqual(bytes(ordered.room), b"nothing")

    def test_what_comes_behind_an_ordered_command_waits_for_it(self):
        session, device, reading = self.held(threads=4)
        ordered = self.write(session, ORDERED, b"ordered")
        # They do not need the flash either; tgtd by itself lets them overtake.
        behind = [self.submit(session, SIMPLE, Command(osd.READ, P, O, length=7)) for _ in range(3)]
        last = self.write(session, SIMPLE, b"last...")
        session.wait(last, *behind)
        self.assertEqual(session.ended[:2], [reading, ordered])
        self.assertEqual([task.status for task in session.ended], [GOOD] * 6)
        self.assertNotIn(b"nothing", [bytes(task.room) for task in behind])
        self.assertEqual(device.read(P, O, 0, 7), b"last...")

    def test_a_head_of_queue_command_lets_nothing_overtake_an_ordered_one(self):
        for _ in range(10):
            begun = time.monotonic()
            session, _, ordered = self.held(threads=4, attribute=ORDERED)
            simple = self.read(session, SIMPLE)
            # They run beside the ORDERED one and end before it.
            session.wait(*[self.read(session, HEAD_OF_QUEUE) for _ in range(3)])
            last = self.read(session, ORDERED)
            head = self.read(session, HEAD_OF_QUEUE)
            session.wait(head)
            if time.monotonic() - begun < HELD_SECONDS:
                break
            session.wait(ordered, simple, last)  # this host was too slow
        self.assert_ended(session, head, ordered, simple, last)

    def test_what_waits_behind_an_ordered_command_can_be_aborted(self):
        session, device, reading = self.held(threads=4)
        ordered = self.write(session, ORDERED, b"ordered")
        aborted = self.write(session, SIMPLE, b"aborted")
        self.assertEqual(session.manage(ABORT_TASK, session.tag_of(aborted)), FUNCTION_COMPLETE)
        self.assertEqual(session.ended, [aborted])
        session.wait(reading, ordered)
        self.assertEqual([task.status for task in (reading, ordered, aborted)], [GOOD, GOOD, TASK_ABORTED])
        self.assertEqual(device.read(P, O, 0, 7), b"ordered")

    def test_an_ordered_command_that_waits_can_be_aborted_at_once(self):
        session, device, reading = self.held(threads=4)
        ordered = self.write(session, ORDERED, b"ordered")
        behind = self.write(session, SIMPLE, b"behind.")
        self.assertEqual(session.manage(ABORT_TASK, session.tag_of(ordered)), FUNCTION_COMPLETE)
        self.assertEqual(ordered.status, TASK_ABORTED)
        self.assertFalse(reading.done)
        session.wait(behind, reading)
        self.assertEqual((reading.status, behind.status), (GOOD, GOOD))
        self.assertEqual(device.read(P, O, 0, 7), b"behind.")

    def test_simple_commands_overtake_each_other(self):
        session, _, reading = self.held(threads=4)
        self.assert_ended(session, self.submit(session, SIMPLE, Command(osd.READ, P, O, length=7)), reading)

    def test_an_aborted_command_that_has_not_begun_is_not_executed(self):
        session, device, reading = self.held(threads=1)
        kept = self.write_on_thread(session, b"kept...")
        aborted = self.write_on_thread(session, b"aborted")
        self.assertEqual(session.manage(ABORT_TASK, session.tag_of(aborted)), FUNCTION_COMPLETE)
        self.assertEqual(session.ended, [aborted])
        session.wait(reading, kept)
        self.assertEqual([task.status for task in (reading, kept, aborted)], [GOOD, GOOD, TASK_ABORTED])
        self.assertEqual(device.read(P, O, 0, 7), b"kept...")

    def test_a_command_that_has_begun_goes_on_to_its_end_and_its_abort_is_answered_then(self):
        session, _, reading = self.held(threads=4)
        self.assertEqual(session.manage(ABORT_TASK, session.tag_of(reading)), NO_SUCH_TASK)
        self.assertEqual((reading.status, bytes(reading.room)), (GOOD, LARGE_DATA))

    def test_a_request_that_another_takes_the_place_of_is_rejected(self):
        daemon = self.slow_daemon(threads=4)
        session, _, reading = self.held(4, SIMPLE, daemon)
        session.request(ABORT_TASK, session.tag_of(reading))
        # When this one is answered, the unit has seen the one before.
        waiting = self.write(session, ORDERED, b"aborted")
        self.assertEqual(session.manage(ABORT_TASK, session.tag_of(waiting)), FUNCTION_COMPLETE)
        session.request(LOGICAL_UNIT_RESET)
        self.assertEqual(session.next_response(), FUNCTION_REJECTED)
        self.assertEqual(session.next_response(), FUNCTION_COMPLETE)
        self.assertEqual(reading.status, GOOD)
        # tgtd by itself answers the first one never, and keeps its session.
        session.close()
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_requests_that_come_together_leave_nothing_behind(self):
        """tgtd forgets a request when another one for the same command comes: its session and socket would stay."""
        daemon = self.slow_daemon(threads=4)
        folder = f"/proc/{daemon.tgtd_pid}/fd"
        before = len(os.listdir(folder))
        for _ in range(3):
            session, _, reading = self.held(4, SIMPLE, daemon)
            for _ in range(20):
                session.request(ABORT_TASK, session.tag_of(reading))
            session.request(LOGICAL_UNIT_RESET)
            self.assertEqual([session.next_response() for _ in range(20)], [FUNCTION_REJECTED] * 20)
            self.assertEqual(session.next_response(), FUNCTION_COMPLETE)
            session.close()
        limit = time.monotonic() + LIMIT_SECONDS
        while len(os.listdir(folder)) > before:
            self.assertLess(time.monotonic(), limit, "sockets stay open")
            time.sleep(0.1)
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_reset_ends_what_has_not_begun_of_all_sessions(self):
        session, device, reading = self.held(threads=4)
        other = self.login(self.daemons[4])
        tasks = [self.write(session, ORDERED, b"aborted"), self.write(session, SIMPLE, b"aborted")]
        session.until_answered()  # connections are not in order with each other
        of_other = [self.write(other, SIMPLE, b"aborted"), self.submit(other, ORDERED, bytes(6))]
        other.until_answered()
        self.assertEqual(session.manage(LOGICAL_UNIT_RESET), FUNCTION_COMPLETE)
        # The reset is answered when the one that had begun has ended.
        self.assertEqual([task.status for task in (*tasks, reading)], [TASK_ABORTED, TASK_ABORTED, GOOD])
        other.wait(*of_other)
        self.assertEqual([task.status for task in of_other], [TASK_ABORTED] * 2)
        for told in (session, other):
            refused = told.run(bytes(6))
            self.assertEqual((refused.status, osd.Sense(refused.sense).key), (0x02, osd.UNIT_ATTENTION))
        self.assertEqual(device.read(P, O, 0, 7), b"nothing")

    def test_an_osd_command_finds_what_waits_and_ends_it_at_once(self):
        session, device, reading = self.held(threads=4)
        ordered = self.write(session, ORDERED, b"ordered")
        simple = self.write(session, SIMPLE, b"simple.")
        for task in (ordered, simple):
            self.assertEqual(session.perform(OSD_QUERY_TASK, session.tag_of(task)), (GOOD, SUCCEEDED))
        self.assertEqual(session.perform(OSD_ABORT_TASK, session.tag_of(simple)), (GOOD, COMPLETE))
        self.assertEqual((simple.status, ordered.done, reading.done), (TASK_ABORTED, False, False))
        self.assertEqual(session.perform(OSD_ABORT_TASK_SET), (GOOD, COMPLETE))
        # It is answered behind the one that had begun.
        self.assertEqual((ordered.status, reading.status), (TASK_ABORTED, GOOD))
        self.assertEqual(device.read(P, O, 0, 7), b"nothing")

    def test_a_stop_executes_what_waits(self):
        daemon = self.slow_daemon(threads=4)
        session, _, _ = self.held(4, SIMPLE, daemon)
        self.write(session, ORDERED, b"ordered")
        self.submit(session, ORDERED, bytes(6))
        self.write(session, ORDERED, b"last...")
        session.until_answered()
        self.assertEqual(daemon.stop(), 0, daemon.errors)
        self.assertTrue(any("everything is stable" in line for line in daemon.errors), daemon.errors)
        self.assertEqual(Osd(self.login(daemon.start())).read(P, O, 0, 7), b"last...")

    def test_waiting_commands_of_a_lost_connection_hold_up_nobody(self):
        session, _, _ = self.held(threads=4)
        self.write(session, ORDERED, b"ordered")
        self.submit(session, ORDERED, bytes(6))
        self.write(session, SIMPLE, b"simple.")
        session.close()
        session = self.login(self.daemons[4])
        ordered = self.submit(session, ORDERED, Command(osd.READ, P, O, length=7))
        session.wait(ordered)
        self.assertEqual((ordered.status, bytes(ordered.room)), (GOOD, b"simple."))

    def test_commands_that_tgtd_answers_have_an_order_too(self):
        session, _, reading = self.held(threads=4)
        ready = self.submit(session, ORDERED, bytes(6))
        inquiry = self.submit(session, SIMPLE, Inquiry())
        overtaking = self.submit(session, HEAD_OF_QUEUE, Inquiry())
        simple = self.read(session, SIMPLE)
        self.assert_ended(session, overtaking, reading, ready, inquiry)
        self.assert_ended(session, ready, simple)
        self.assertEqual(bytes(inquiry.room[:1]), b"\x11")
        self.assertEqual(overtaking.room, inquiry.room)

    def test_an_aborted_task_set_that_has_not_begun_is_not_executed(self):
        session, device, reading = self.held(threads=1)
        tasks = [self.write_on_thread(session, b"aborted") for _ in range(3)]
        self.assertEqual(session.manage(ABORT_TASK_SET), FUNCTION_COMPLETE)
        self.assertEqual(device.read(P, O, 0, 7), b"nothing")
        self.assertEqual([task.status for task in tasks], [TASK_ABORTED] * 3)
        self.assertTrue(reading.done)


if __name__ == "__main__":
    unittest.main()
