# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""OSD commands in envelopes (docs/protocol.md), sent by the distribution's libiscsi, which knows neither extended CDBs nor
OSD. An EnvelopeSession stands in the place of an iscsi.Session for what osd.py does."""

import ctypes
import itertools
import struct

from iscsi import Task

SEND, FETCH = 0xC0, 0xC1
HEAD_BYTES, PLACE = 272, 16
NORMAL_SESSION = 2
XFER_NONE, XFER_READ, XFER_WRITE = range(3)


class Data(ctypes.Structure):
    """struct iscsi_data"""

    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]


class ScsiTask(ctypes.Structure):
    """The beginning of struct scsi_task."""

    _fields_ = [("status", ctypes.c_int)]


def load():
    """libiscsi, or None."""
    try:
        libiscsi = ctypes.CDLL("libiscsi.so.7")
    except OSError:
        return None
    libiscsi.iscsi_create_context.restype = ctypes.c_void_p
    libiscsi.iscsi_get_error.restype = ctypes.c_char_p
    libiscsi.scsi_create_task.restype = ctypes.POINTER(ScsiTask)
    libiscsi.iscsi_scsi_command_sync.restype = ctypes.POINTER(ScsiTask)
    return libiscsi


class EnvelopeSession:
    """A session of libiscsi's. Tasks are done when they have been submitted."""

    def __init__(self, libiscsi, port, target, lun, name="iqn.2026-11.host:libiscsi"):
        self.libiscsi, self.lun = libiscsi, lun
        self.tags = itertools.count(0x1122334455667788)
        self.context = ctypes.c_void_p(libiscsi.iscsi_create_context(name.encode()))
        libiscsi.iscsi_set_targetname(self.context, target.encode())
        libiscsi.iscsi_set_session_type(self.context, NORMAL_SESSION)
        libiscsi.iscsi_set_noautoreconnect(self.context, 1)
        if libiscsi.iscsi_full_connect_sync(self.context, f"127.0.0.1:{port}".encode(), lun) != 0:
            raise ConnectionError(libiscsi.iscsi_get_error(self.context).decode())

    def close(self):
        """Without a logout: the target may be gone."""
        self.libiscsi.iscsi_destroy_context(self.context)

    def plain(self, cdb, data_out=b"", room=0):
        """(status, Data-In) of a command of up to 16 bytes."""
        direction = XFER_WRITE if data_out else XFER_READ if room else XFER_NONE
        task = self.libiscsi.scsi_create_task(len(cdb), bytes(cdb), direction, len(data_out) or room)
        buffer = ctypes.create_string_buffer(max(room, 1))
        if room:
            self.libiscsi.scsi_task_add_data_in_buffer(task, room, buffer)
        data = Data(len(data_out), bytes(data_out))
        if not self.libiscsi.iscsi_scsi_command_sync(self.context, self.lun, task, ctypes.byref(data) if data_out else None):
            raise ConnectionError(self.libiscsi.iscsi_get_error(self.context).decode())
        status = task.contents.status
        self.libiscsi.scsi_free_scsi_task(task)
        return status, buffer.raw[:room]

    def submit(self, cdb, data_out=b"", read_length=0):
        task, tag = Task(data_out, read_length), next(self.tags)
        letter = struct.pack(">BxHI8x256s", 1, len(cdb), len(data_out), bytes(cdb)) + bytes(data_out)
        room = HEAD_BYTES + read_length
        for envelope, data, length in ((SEND, letter, len(letter)), (FETCH, b"", room)):
            packed = struct.pack(">BxQIxx", envelope, tag, length)
            status, answer = self.plain(packed, data, 0 if data else room)
            assert status == 0, f"{envelope:#x} ended with status {status:#x}"
        form, task.status, sense_length, task.received, _ = struct.unpack_from(">BBHII", answer)
        assert form == 1
        task.sense = answer[PLACE : PLACE + sense_length]
        task.room[: task.received] = answer[HEAD_BYTES : HEAD_BYTES + task.received]
        task.done = True
        return task

    @staticmethod
    def wait(task):
        return task
