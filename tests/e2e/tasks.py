# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""An initiator that manages tasks: asks for attributes, aborts, resets, and knows what has come to the target."""

import itertools
import struct

import iscsi
from osd import GOOD, Command

TASK_MANAGEMENT, TASK_MANAGEMENT_RESPONSE = 0x02, 0x22
ABORT_TASK, ABORT_TASK_SET, LOGICAL_UNIT_RESET = 1, 2, 5
FUNCTION_COMPLETE, NO_SUCH_TASK, FUNCTION_REJECTED = 0, 1, 255
SIMPLE, ORDERED, HEAD_OF_QUEUE = 1, 2, 3
TASK_ABORTED = 0x40
NOP_TAG, MANAGEMENT_TAGS = 0x70000000, itertools.count(0x70000001)


class Managed(Exception):
    """The answer to a task management request came."""


class Answered(Exception):
    """The answer to a NOP-Out came."""


class Session(iscsi.Session):
    def __init__(self, *arguments, **keys):
        self.ended = []  # tasks, in the order in which their statuses came
        super().__init__(*arguments, **keys)

    def step(self):
        under_way = dict(self.tasks)
        super().step()
        self.ended += [task for tag, task in under_way.items() if tag not in self.tasks]

    def tag_of(self, task):
        return next(tag for tag, other in self.tasks.items() if other is task)

    def _receive(self):
        header, data = super()._receive()
        if header[0] & 0x3F == iscsi.NOP_IN and int.from_bytes(header[16:20], "big") == NOP_TAG:
            self.exp_stat_sn = (int.from_bytes(header[24:28], "big") + 1) & 0xFFFFFFFF
            raise Answered
        if header[0] & 0x3F == TASK_MANAGEMENT_RESPONSE:
            self.exp_stat_sn = (int.from_bytes(header[24:28], "big") + 1) & 0xFFFFFFFF
            raise Managed(header[2])
        return header, data

    def request(self, function, tag=iscsi.TAG_NONE):
        """Sends a task management request."""
        header = bytearray(iscsi.BHS_BYTES)
        header[0:2] = bytes([0x40 | TASK_MANAGEMENT, iscsi.FINAL | function])
        header[8:16] = self.lun
        struct.pack_into(">IIIII", header, 16, next(MANAGEMENT_TAGS), tag, self.cmd_sn, self.exp_stat_sn, self.cmd_sn)
        self._send(header)

    def next_response(self):
        """Serves commands until a task management request is answered; returns the response code."""
        try:
            while True:
                self.step()
        except Managed as answer:
            return answer.args[0]

    def manage(self, function, tag=iscsi.TAG_NONE):
        self.request(function, tag)
        return self.next_response()

    def send_all(self, command):
        """Submits a command that writes, and returns when the target has all of its data."""
        task = command.submit(self)
        while task.immediate + task.unsolicited + sum(length for _, length in task.r2ts) < len(task.data_out):
            self.step()
        self.until_answered()
        return task

    def until_answered(self):
        """Until the target has everything that was sent: a NOP-Out is answered as it comes."""
        header = bytearray(iscsi.BHS_BYTES)
        header[0:2] = bytes([0x40 | iscsi.NOP_OUT, iscsi.FINAL])
        struct.pack_into(">IIII", header, 16, NOP_TAG, iscsi.TAG_NONE, self.cmd_sn, self.exp_stat_sn)
        self._send(header)
        try:
            while True:
                self.step()
        except Answered:
            pass

    def perform(self, function, tag=0):
        """PERFORM TASK MANAGEMENT FUNCTION, ahead of all other commands: the status and service response."""
        self.attribute = HEAD_OF_QUEUE
        command = Command.manage_tasks(function, tag)
        answer = command.answer(self.wait(command.submit(self)))
        self.attribute = SIMPLE
        return answer.status, answer.data[4]

    def until_ready(self):
        """Takes the unit attentions that a reset leaves."""
        while self.run(bytes(6)).status != GOOD:
            pass
