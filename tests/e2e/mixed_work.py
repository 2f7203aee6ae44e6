# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""One initiator of test_transfers.py, as a program: mixed work against a model of what objects must hold.

    mixed_work.py PORT TARGET WORKER OPERATIONS SEED OWN_PARTITION SHARED_PARTITION LOG_OBJECT

Works in a partition of its own and beside others in a shared one, there on IDs that no other worker uses, and appends
records to one object that all workers append to. Ends with an error at the first answer that is not as the model says.
"""

import random
import struct
import sys

import osd
from iscsi import Session
from osd import Osd

OBJECTS = 6
LENGTH_MAX = 300_000
RECORD_BYTES = 64


def record(worker, number):
    """What worker's n-th append to the log object adds."""
    return struct.pack(">II", worker, number) * (RECORD_BYTES // 8)


class Worker:
    def __init__(self, session, worker, seed, places):
        self.device = Osd(session, 1 + worker % 2)
        self.worker = worker
        self.numbers = random.Random(seed * 1000 + worker)
        self.places = places
        self.model = {}
        self.appended = 0

    def data(self):
        return self.numbers.randbytes(int(self.numbers.expovariate(1 / 30_000)) % LENGTH_MAX)

    def check(self, condition, what):
        if not condition:
            raise AssertionError(f"worker {self.worker}: {what}")

    def store(self, place):
        self.model[place] = bytearray(self.data())
        self.device.must(osd.CREATE, *place)
        if self.model[place]:
            self.device.write(*place, 0, bytes(self.model[place]))

    def write(self, place):
        at, data, model = self.numbers.randrange(LENGTH_MAX), self.data(), self.model[place]
        if data:
            model.extend(bytes(max(at + len(data) - len(model), 0)))
            model[at : at + len(data)] = data
            self.device.write(*place, at, data)

    def append(self, place):
        data = self.data()
        self.model[place] += data
        self.device.must(osd.APPEND, *place, data=data)

    def truncate(self, place):
        length, model = self.numbers.randrange(LENGTH_MAX), self.model[place]
        del model[length:]
        model.extend(bytes(length - len(model)))
        self.device.set_length(*place, length)

    def read(self, place):
        model = self.model[place]
        if model:
            at = self.numbers.randrange(len(model))
            length = self.numbers.randint(1, len(model) - at)
            self.check(self.device.read(*place, at, length) == model[at : at + length], f"{place}: {length} at {at}")

    def remove(self, place):
        del self.model[place]
        self.device.must(osd.REMOVE, *place)

    def append_to_log(self, log):
        self.device.must(osd.APPEND, *log, data=record(self.worker, self.appended))
        self.appended += 1

    def work(self, operations, log):
        for _ in range(operations):
            place = self.numbers.choice(self.places)
            if place not in self.model:
                self.store(place)
                continue
            act = self.numbers.choices(
                (self.read, self.write, self.append, self.truncate, self.remove), (4, 4, 2, 1, 1)
            )[0]
            act(place)
            if self.numbers.random() < 0.3:
                self.append_to_log(log)
        for place in self.model:
            self.check(self.device.length(*place) == len(self.model[place]), f"{place}: length")
            if self.model[place]:
                self.check(self.device.read(*place, 0, len(self.model[place])) == self.model[place], f"{place}: content")


def main():
    port, target = int(sys.argv[1]), sys.argv[2]
    worker, operations, seed, own, shared, log = (int(word, 0) for word in sys.argv[3:])
    places = [(own, 0x10000 + number) for number in range(OBJECTS)]
    places += [(shared, 0x20000 + 0x100 * worker + number) for number in range(OBJECTS)]
    keys = {"FirstBurstLength": "8192", "MaxBurstLength": "16384"} if worker % 4 == 3 else {}
    name = f"iqn.2014-06.local.host:worker{worker}"
    with Session(port, target, name=name, ImmediateData="No" if worker % 4 > 1 else "Yes", **keys) as session:
        run = Worker(session, worker, seed, places)
        run.device.create_partition(own)
        run.work(operations, (shared, log))
    print(run.appended)


if __name__ == "__main__":
    main()
