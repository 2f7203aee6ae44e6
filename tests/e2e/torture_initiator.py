# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""One initiator of torture.py, as a program that may be killed at any time:

    torture_initiator.py PORT TARGET NUMBER SEED JOURNAL CONTROL

It writes, reads, cuts and removes objects of its own, several commands at once, flushes now and then, drops its
connection as its dice say, and logs in again whenever it is lost. Each thing that it reads is judged. Line `check` on
its standard input: it reads every object and answers with a line of counts. `end`: it logs out and ends.
"""

import json
import random
import select
import socket
import struct
import sys
import time

import osd
from iscsi import Session
from osd import Command
from torture_host import ANSWERS, ERRORS_MAY_BE, FLAGS, FULL_MAY_BE, HOST_FAILURES, REFUSALS, Control
from torture_judge import Judge, Wrong, content, state_of

FIRST = 0x10000
OBJECTS = 16
UNITS_MAX = 20
SIZES = (512, 4096, 4096, 8192)  # of a unit, by object
DEPTH = 4  # commands at once
FLUSH_ALL = 2
LOGIN_SECONDS = 120  # without the target only a mistake takes so long
OBJECT_FIELD, ADDRESS_FIELD = 24, 40  # of the CDB, which sense data points at
SIMPLE, ORDERED = 1, 2
BUSY, TASK_SET_FULL = 0x08, 0x28


class Refused(Exception):
    """The target could not do it, which it may at this moment."""


class CutSession(Session):
    """Its connection ends inside a PDU once `cut` is set: how many PDUs before that one, and where in it."""

    cut = None

    def _send(self, header, data=b""):
        if self.cut is None:
            super()._send(header, data)
        elif self.cut[0] > 0:
            self.cut = (self.cut[0] - 1, self.cut[1])
            super()._send(header, data)
        else:
            header = bytearray(header)
            header[5:8] = len(data).to_bytes(3, "big")
            whole = bytes(header) + bytes(data)
            self.socket.sendall(whole[: int(self.cut[1] * len(whole))])
            raise ConnectionError("cut by its own dice")


class Initiator:
    def __init__(self, port, target, number, seed, journal, control):
        self.port, self.target, self.number = port, target, number
        self.partition = FIRST + number
        self.control = Control(control)
        self.judge = Judge(journal)
        self.dice = random.Random(seed)
        self.session = None
        self.under_way = []  # (object, or marks of a flush; command; task; whether it forces its data out)
        self.counts = dict.fromkeys(("commands", "reads", "flushes", "full", "errors", "logins", "drops"), 0)

    # ---- the connection ----

    def size(self, number):
        return SIZES[number % len(SIZES)]

    def log_in(self):
        limit = time.monotonic() + LOGIN_SECONDS
        while True:
            try:
                name = f"iqn.2014-06.local.host:torture{self.number}"
                self.session = CutSession(
                    self.port, self.target, name=name, ImmediateData=self.dice.choice(("Yes", "No"))
                )
                break
            except (OSError, EOFError):
                if time.monotonic() > limit:
                    raise Wrong(f"no login within {LOGIN_SECONDS} s") from None
                time.sleep(0.01)
        self.counts["logins"] += 1
        self.under_way = []
        # Commands of the connection before it are executed as if it still stood: they come first.
        self.session.attribute = ORDERED
        answer = self.run(osd.CREATE_PARTITION, self.partition)
        self.session.attribute = SIMPLE
        if answer.status != osd.GOOD and answer.sense.key not in (osd.ILLEGAL_REQUEST, osd.DATA_PROTECT):
            self.may_fail(answer)
        self.resolve(strict=False)

    def drop(self):
        kind = self.dice.choice(("close", "reset", "cut"))
        self.counts["drops"] += 1
        if kind == "cut":
            self.session.cut = (self.dice.randrange(3), self.dice.random())
            return
        if kind == "reset":
            self.session.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionError("dropped by its own dice")

    def lose(self):
        if self.session:
            self.session.close()
        self.session = None
        self.under_way = []

    # ---- answers ----

    def run(self, action, *place, **rest):
        """One command by itself; again behind a unit attention."""
        while True:
            answer = Command(action, *place, **rest).run(self.session)
            self.told()
            if not (answer.sense and answer.sense.key == osd.UNIT_ATTENTION):
                return answer

    def told(self):
        self.control[ANSWERS + self.number] += 1

    def may_fail(self, answer):
        """Raises Refused, or Wrong when nothing is the matter with the host."""
        sense, flags = answer.sense, self.control[FLAGS]
        if sense and (sense.key, sense.code) == (osd.DATA_PROTECT, osd.QUOTA_ERROR) and flags & FULL_MAY_BE:
            self.counts["full"] += 1
            self.control[REFUSALS + self.number] += 1
        elif sense and sense.key in (osd.MEDIUM_ERROR, osd.HARDWARE_ERROR) and flags & ERRORS_MAY_BE:
            self.counts["errors"] += 1
        else:
            raise Wrong(f"a command fails: status {answer.status:#x}, {sense}")
        raise Refused

    def state_in(self, number, answer):
        """What a READ of a whole object shows."""
        if answer.status == osd.GOOD or answer.short:
            self.counts["reads"] += 1
            data = answer.data[: answer.sense.command_information] if answer.short else answer.data
            return state_of(self.size(number), self.number, number, data)
        if answer.sense and (answer.sense.key, answer.sense.code) == (osd.ILLEGAL_REQUEST, osd.INVALID_FIELD_IN_CDB):
            if answer.sense.field == OBJECT_FIELD:
                return None
            if answer.sense.field == ADDRESS_FIELD:
                return ()  # an object without a byte has none to begin at
        return self.may_fail(answer)

    # ---- judging ----

    def look(self, number):
        length = (UNITS_MAX + 1) * self.size(number)
        return self.state_in(number, self.run(osd.READ, self.partition, number, length=length))

    def resolve(self, strict):
        """Reads what may be one thing or another: after the host's failure all, else what was not answered."""
        failures = self.control[HOST_FAILURES]
        if self.judge.host_failures != failures:
            for number in self.numbers():
                self.judge.found_after_failure(number, self.look(number))
            self.judge.survived(failures)
        for number in self.judge.unanswered():
            try:
                self.judge.found(number, self.look(number))
            except Refused:
                if strict:
                    raise Wrong(f"object {number:#x} can't be read") from None

    def numbers(self):
        return range(FIRST, FIRST + OBJECTS)

    def check(self):
        """All of it, when the host is well."""
        while True:
            try:
                if not self.session:
                    self.log_in()
                self.finish()
                self.resolve(strict=True)
                for number in self.numbers():
                    self.judge.found(number, self.look(number))
                break
            except Refused:
                raise Wrong("an object can't be read") from None
            except OSError:
                self.lose()
        print(json.dumps(self.counts), flush=True)

    # ---- work ----

    def change(self, number):
        """A command on an object, and the state that it leads to."""
        dice, size, state = self.dice, self.size(number), self.judge.newest(number)
        place = (self.partition, number)
        generation = self.judge.new_generation()
        if state is None:
            to = (generation,) * dice.randint(1, UNITS_MAX)
            return Command(osd.CREATE_AND_WRITE, *place, data=content(size, self.number, number, to)), to
        kind = dice.random()
        if kind < 0.05:
            return Command(osd.REMOVE, *place), None
        if kind < 0.12:
            units = dice.randrange(UNITS_MAX + 1)
            to = (state + (0,) * units)[:units]
            value = (osd.USER_INFORMATION, osd.LOGICAL_LENGTH, (units * size).to_bytes(8, "big"))
            return Command(osd.SET_ATTRIBUTES, *place, sets=[value]), to
        first = dice.randrange(UNITS_MAX)
        last = min(first + dice.choice((1, 1, 2, 5, UNITS_MAX)), UNITS_MAX)
        to = list(state) + [0] * (last - len(state))
        to[first:last] = [generation] * (last - first)
        data = content(size, self.number, number, to[first:last], first)
        options = osd.FUA if dice.random() < 0.05 else 0
        return Command(osd.WRITE, *place, address=first * size, data=data, options=options), tuple(to)

    def begin(self):
        """One more command under way."""
        dice = self.dice
        busy = {what for what, *_ in self.under_way if isinstance(what, int)}
        free = [number for number in self.numbers() if number not in busy and not self.judge.of(number).pending]
        kind = dice.random()
        if kind < 0.02 or not free:
            command = Command(osd.FLUSH_OSD, scope=FLUSH_ALL)
            self.under_way.append((self.judge.flush(), command, command.submit(self.session), False))
            return
        number = dice.choice(free)
        if kind < 0.3:
            command = Command(osd.READ, self.partition, number, length=(UNITS_MAX + 1) * self.size(number))
        else:
            command, to = self.change(number)
            self.judge.begin(number, to)
        forced = command.cdb[10] & osd.FUA != 0
        self.under_way.append((number, command, command.submit(self.session), forced))

    def take(self):
        """The answer to the oldest command."""
        what, command, task, forced = self.under_way[0]
        self.session.wait(task)
        self.under_way.pop(0)
        self.told()
        self.counts["commands"] += 1
        answer = command.answer(task)
        attention = answer.sense and answer.sense.key == osd.UNIT_ATTENTION
        try:
            self.judge_answer(what, command, answer, attention or answer.status in (BUSY, TASK_SET_FULL), forced)
        except Refused:
            pass

    def judge_answer(self, what, command, answer, not_begun, forced):
        if not isinstance(what, int):
            if answer.status == osd.GOOD:
                self.counts["flushes"] += 1
                self.judge.flushed(what)
            elif not not_begun:
                self.may_fail(answer)
        elif not self.judge.of(what).pending:
            if not not_begun:
                self.judge.found(what, self.state_in(what, answer))
        elif answer.status == osd.GOOD or not_begun:
            self.judge.end(what, not not_begun, forced)
        else:
            self.refused(what, answer)

    def refused(self, number, answer):
        """A command that found no room has done nothing; one that met an error may have, and is looked at again."""
        try:
            self.may_fail(answer)
        except Refused:
            if answer.sense.key == osd.DATA_PROTECT:
                self.judge.end(number, False)
            raise

    def finish(self):
        while self.under_way:
            self.take()

    def work(self):
        if not self.session:
            self.log_in()
        if self.dice.random() < 0.003:
            self.drop()
        if self.dice.random() < 0.01:
            self.finish()
            self.resolve(strict=False)
        if len(self.under_way) < DEPTH:
            self.begin()
        else:
            self.take()

    def loop(self):
        while True:
            if select.select([sys.stdin], [], [], 0)[0]:
                if sys.stdin.readline().strip() != "check":
                    break
                self.check()
            try:
                self.work()
            except (Refused, OSError):
                self.lose()


def main():
    port, target, number, seed, journal, control = sys.argv[1:]
    initiator = Initiator(int(port), target, int(number), int(seed), journal, control)
    try:
        initiator.loop()
    except Wrong as wrong:
        print(f"initiator {number}: {wrong}", file=sys.stderr)
        sys.exit(1)
    initiator.lose()


if __name__ == "__main__":
    main()
