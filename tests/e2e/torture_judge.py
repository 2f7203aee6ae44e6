# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What each object of one initiator may hold, whatever becomes of service and host.

An object is a row of units of one size. Its state is a tuple with the generation of each unit, or None: it is not
there. Each command on an object leads from one state to another; a unit's bytes say which generation they are.

The judge writes what it is told to a journal, a line each, so that another process can go on when this one is killed.
"""

import os
import struct
import zlib

HOLE = 0  # generation of a unit that nobody wrote
HEAD = struct.Struct(">QIIQI4x")  # object, unit, initiator, generation, CRC-32 of these
UNIT_BYTES_MIN = HEAD.size


class Wrong(Exception):
    """What was found is nothing that may be there."""


def unit_bytes(size, initiator, number, unit, generation):
    """A unit's content, which describes itself from its first byte to its last."""
    if generation == HOLE:
        return bytes(size)
    fields = number, unit, initiator, generation
    head = HEAD.pack(*fields, zlib.crc32(struct.pack(">QIIQ", *fields)))
    return head * (size // len(head))


def content(size, initiator, number, state, first=0):
    """Bytes of an object in a state, from its first unit on."""
    return b"".join(
        unit_bytes(size, initiator, number, first + unit, generation) for unit, generation in enumerate(state)
    )


def state_of(size, initiator, number, data):
    """The state that these bytes show; Wrong when they show none."""
    state = []
    if len(data) % size:
        raise Wrong(f"object {number:#x}: {len(data)} bytes, which is no number of units of {size}")
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        generation = HOLE if piece == bytes(size) else HEAD.unpack_from(piece)[3]
        if piece != unit_bytes(size, initiator, number, at // size, generation):
            raise Wrong(f"object {number:#x}: wrong bytes at {at}: {piece[:32].hex()}")
        state.append(generation)
    return tuple(state)


class History:
    """The states that one object may be in. The newest is acknowledged; older ones may come back if the host fails."""

    def __init__(self):
        self.states = [None]
        self.dropped = 0  # states before these, which were flushed over
        self.pending = []  # where commands lead that were not answered

    def mark(self):
        return self.dropped + len(self.states) - 1

    def stable(self, mark):
        """All up to this mark has reached the host's storage."""
        gone = max(mark - self.dropped, 0)
        self.states = self.states[gone:]
        self.dropped += gone


class Judge:
    """Knows the histories of an initiator's objects. Commands: begin, then end once they are answered."""

    def __init__(self, journal=None):
        """`journal`: a path, or None. What it holds already is taken up."""
        self.histories = {}
        self.generation = 0
        self.host_failures = 0
        self.file = None
        if journal:
            self.take_up(journal)
            self.file = open(journal, "ab", buffering=0)

    def of(self, number):
        return self.histories.setdefault(number, History())

    def newest(self, number):
        """The state that was acknowledged last."""
        return self.of(number).states[-1]

    def unanswered(self):
        return [number for number, history in self.histories.items() if history.pending]

    # ---- what is done, and told ----

    def begin(self, number, state):
        """A command on its way, which leads to this state. Before its first byte is sent."""
        self._note("begin", number, state)

    def end(self, number, good, stable=False):
        """It was answered: done, and if `stable` on the host's storage; or refused, and nothing has changed."""
        self._note("end", number, (int(good), int(stable)))

    def flush(self):
        """A FLUSH is to be sent; what `flushed` wants to know."""
        return {number: history.mark() for number, history in self.histories.items()}

    def flushed(self, marks):
        for number, mark in marks.items():
            self._note("flushed", number, (mark,))

    def found(self, number, state):
        """An object was read. Wrong when it can't hold that."""
        history = self.of(number)
        if state != history.states[-1] and state not in history.pending:
            raise Wrong(f"object {number:#x} holds {state}, not {history.states[-1]}, nor one of {history.pending}")
        if history.pending:
            self._note("found", number, state)

    def found_after_failure(self, number, state):
        """As found, when the host has failed: what was not flushed may be gone."""
        history = self.of(number)
        if state not in history.states and state not in history.pending:
            raise Wrong(
                f"object {number:#x} holds {state} after the host's failure, not one of {history.states}, "
                f"nor of {history.pending}"
            )
        self._note("back", number, state)

    def survived(self, failures):
        """All objects were read after so many failures of the host."""
        self._note("survived", failures, None)

    def new_generation(self):
        self.generation += 1
        return self.generation

    # ---- the journal ----

    def _note(self, what, number, values):
        self._apply(what, number, values)
        if self.file:
            text = "-" if values is None else ",".join(map(str, values))
            self.file.write(f"{what} {number} {text}\n".encode())

    def _apply(self, what, number, values):
        if what == "survived":
            self.host_failures = number
            return
        history = self.of(number)
        if what == "begin":
            history.pending.append(values)
            self.generation = max([self.generation, *(values or ())])
        elif what == "end":
            state = history.pending.pop()
            if values[0]:
                history.states.append(state)
            if values[0] and values[1]:
                history.stable(history.mark())
        elif what == "flushed":
            history.stable(values[0])
        elif what == "found":
            history.pending = []
            if values != history.states[-1]:
                history.states.append(values)
        else:
            history.pending = []
            history.dropped += len(history.states)
            history.states = [values]

    def take_up(self, path):
        """Does again what a journal says; its last line may lack its end."""
        if not os.path.exists(path):
            return
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
        for line in lines[:-1]:
            what, number, text = line.decode().split(" ")
            values = None if text == "-" else tuple(int(word) for word in text.split(",") if word)
            self._apply(what, int(number), values)
        if lines[-1]:
            os.truncate(path, sum(len(line) + 1 for line in lines[:-1]))
