#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Torture: several initiators work without a pause while service, host and initiators are killed, stopped, cut off,
filled up, starved and made to fail. Behind each torment every object of every initiator is read and judged.

    tests/e2e/torture.py --seconds 600                         in all worlds, one after the other
    tests/e2e/torture.py --seed 7 --world ext4:file --rounds 50

A world is a file system and a back end. Torments, their order and what initiators do follow from the seed; when exactly
a torment strikes does not.
"""

import argparse
import collections
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import torture_host as host
from harness import BUILD, IQN, LIMIT_SECONDS, Daemon, children_of
from torture_host import Control, FileSystem, MemoryLimit, NotPossible

WORLDS = ("ext4:mmap", "xfs:mmap", "ext4:file", "xfs:file", "tmpfs:mmap", "folder:file")
INITIATORS = 4
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torture_initiator.py")
ROUND_ANSWERS = (20, 600)  # commands between two torments
SQUEEZED_SECONDS = 3  # of little memory: with too little the kernel does nothing but read pages again
RESTARTS_OF_TGTD = 2  # by one muninnd: each makes it wait longer
CONFIG = """
[daemon]
watchdog = 5
stop_timeout = 20
[limits]
stall_timeout = 2
[nand]
backend = {backend}
channels = 1
dies_per_channel = 1
[engine]
rows = 2
segment_pages = 64
history_interval = 50
[lun 1]
type = osd
image = {image}
size = 96M
threads = 2
"""
# What the log of a service that is well never says.
DEATH = re.compile(r"died of signal (\d+)")
DEFECT = re.compile(r"rule of flash broken|Sanitizer|assert|contradict|corrupt|damaged|ended with exit code")
# But when the host has failed while it wrote the NVRAM file.
HALF_WRITTEN = "pages of NVRAM are damaged"


class Failed(AssertionError):
    """Something that must never happen."""


class InitiatorProcess:
    """A torture_initiator.py, which outlives no torture. Its journal outlives it."""

    def __init__(self, torture, number):
        self.torture, self.number = torture, number
        self.journal = os.path.join(torture.folder, f"journal-{number}")
        self.process = None
        self.start()

    def start(self):
        torture = self.torture
        words = [torture.daemon.port, IQN, self.number, torture.dice.getrandbits(32), self.journal, torture.control.path]
        self.process = subprocess.Popen(
            [sys.executable, "-B", PROGRAM, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def say(self, word):
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended with an error, which `counts` notices

    def counts(self):
        """The answer to `check`."""
        if not select.select([self.process.stdout], [], [], LIMIT_SECONDS)[0]:
            raise Failed(f"initiator {self.number} has not checked its objects within {LIMIT_SECONDS} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"initiator {self.number} ended with {self.process.wait()}; its message is above")
        return json.loads(line)


class Torture:
    """One world, one service, and what happens to them."""

    def __init__(self, seed, world, folder):
        self.seed, self.world, self.folder = seed, world, folder
        self.dice = random.Random(f"{seed}-{world}")
        kind, backend = world.split(":")
        self.torments = collections.Counter()
        self.sums = collections.Counter()
        self.initiators = []
        self.memory = None
        self.last = "begin"
        self.seen = self.deaths = self.restarts = 0
        self.control = Control(os.path.join(folder, "control"), create=True)
        self.control[host.DICE] = self.dice.getrandbits(62)
        self.control.new_host(0)
        self.place = FileSystem(kind, folder)
        config = CONFIG.format(backend=backend, image=os.path.join(self.place.place, "lun1.img"))
        state = os.path.join(folder, "state")
        os.mkdir(state)
        self.daemon = Daemon(state, config=config, environment=self.control.environment())
        self.weights = {
            self.kill_muninnd: 10,
            self.kill_tgtd: 5,
            self.kill_both_in_a_row: 4,
            self.kill_initiators: 3,
            self.stop_initiator: 2,
            self.stop_tgtd: 2,
            self.hang_tgtd: 0.3,
            self.restart: 1,
            self.jump_clock: 2,
            self.shorten_transfers: 1,
            self.fail_transfers: 3,
        }
        if self.place.can_be_full:
            self.weights[self.fill_host] = 1
        if self.place.can_fail:
            self.weights[self.fail_host] = 4
        if kind != "tmpfs":  # its pages can go nowhere else
            self.weights[self.squeeze_memory] = 2

    # ---- the service ----

    def begin(self):
        self.daemon.start()
        self.place.sync()
        try:
            self.memory = MemoryLimit()
            self.memory.take(self.daemon.process.pid, self.daemon.tgtd_pid)
        except NotPossible as reason:
            print(f"{self.world}: without little memory: {reason}", flush=True)
            self.weights.pop(self.squeeze_memory, None)
        self.initiators = [InitiatorProcess(self, number) for number in range(INITIATORS)]
        self.check()

    def start(self):
        self.daemon.start()
        if self.memory:
            self.memory.take(self.daemon.process.pid, self.daemon.tgtd_pid)
        self.seen = self.restarts = 0

    def tgtd(self):
        """Its process now, which muninnd may have started again."""
        limit = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < limit:
            if not self.daemon.running():
                raise Failed(f"muninnd has ended with {self.daemon.wait()}")
            found = children_of(self.daemon.process.pid)
            if found:
                return found[0]
            time.sleep(0.01)
        raise Failed("muninnd does not start tgtd again")

    def read_log(self, may_end_by=()):
        """What the service has said since; Failed if it is something that must not be."""
        for line in self.daemon.errors[self.seen :]:
            if self.last == "fail_host" and HALF_WRITTEN in line:
                continue
            death = DEATH.search(line)
            if death and int(death[1]) != signal.SIGKILL or not death and DEFECT.search(line):
                raise Failed(f"the service says: {line}")
        self.seen = len(self.daemon.errors)
        if not self.daemon.running() and self.daemon.process.returncode not in may_end_by:
            raise Failed(f"muninnd has ended with {self.daemon.process.returncode}")

    def kill(self):
        """kill -9 of muninnd, and with it of tgtd."""
        self.daemon.kill()
        self.read_log(may_end_by=(-signal.SIGKILL,))
        self.sums["kills"] += 1

    # ---- torments ----

    def kill_muninnd(self):
        self.kill()
        self.start()

    def kill_tgtd(self):
        """muninnd starts it again, a few times."""
        if self.restarts == RESTARTS_OF_TGTD:
            self.kill_muninnd()
            return
        victim = self.tgtd()
        os.kill(victim, signal.SIGKILL)
        self.sums["kills"] += 1
        self.restarts += 1
        while self.tgtd() == victim:
            time.sleep(0.01)

    def kill_both_in_a_row(self):
        """Again while it opens the device, or has just begun to serve."""
        self.kill()
        for _ in range(self.dice.randint(1, 3)):
            self.daemon.launch()
            time.sleep(self.dice.random() * 0.1)
            self.kill()
        self.start()

    def kill_initiators(self):
        for initiator in self.dice.sample(self.initiators, self.dice.randint(1, INITIATORS)):
            initiator.kill()
            initiator.start()
            self.sums["initiators killed"] += 1

    def stop_initiator(self):
        """For as long as the others go on, in the middle of whatever it does."""
        victim = self.dice.choice(self.initiators).process
        victim.send_signal(signal.SIGSTOP)
        self.work(self.dice.randint(100, 2000))
        victim.send_signal(signal.SIGCONT)

    def stop_tgtd(self):
        tgtd = self.tgtd()
        os.kill(tgtd, signal.SIGSTOP)
        time.sleep(self.dice.random() * 0.3)
        os.kill(tgtd, signal.SIGCONT)

    def hang_tgtd(self):
        """Until the watchdog does something about it."""
        if self.restarts:
            self.kill_muninnd()
        os.kill(self.tgtd(), signal.SIGSTOP)
        self.daemon.wait_for_line("tgtd does not answer within 5 s")
        self.daemon.wait_for_line("initiators can log in")
        self.restarts += 1

    def restart(self):
        self.stop(0)
        self.start()

    def stop(self, *codes):
        code = self.daemon.stop()
        self.read_log(may_end_by=codes)
        if code not in codes:
            raise Failed(f"muninnd stopped with {code}")

    def jump_clock(self):
        seconds = self.dice.choice((0, 1, 60, 3600, 86400, 400 * 86400, 10 * 365 * 86400))
        self.control[host.CLOCK_OFFSET] = self.dice.choice((-1, 1)) * seconds * 10**9
        self.work(100)

    def shorten_transfers(self):
        """The host moves less than it was told, which is no error."""
        self.control[host.SHORT_TRANSFERS] = 200_000
        self.work(self.dice.randint(200, 1000))
        self.control[host.SHORT_TRANSFERS] = 0

    def fail_transfers(self):
        """Some of the service's reads, writes and syncs fail; then it is started again."""
        self.control[host.FLAGS] = host.ERRORS_MAY_BE | host.FULL_MAY_BE
        for kind in (host.READ_ERRORS, host.WRITE_ERRORS, host.SYNC_ERRORS, host.FULL_ERRORS, host.SHORT_TRANSFERS):
            self.control[kind] = self.dice.choice((0, 0, 1000, 20_000, 200_000))
        self.work(self.dice.randint(50, 1000))
        for kind in range(host.READ_ERRORS, host.SHORT_TRANSFERS + 1):
            self.control[kind] = 0
        if self.dice.random() < 0.5:
            self.stop(0, 1)
        else:
            self.kill()
        self.start()
        self.check()
        self.control[host.FLAGS] = 0

    def fill_host(self):
        self.control[host.FLAGS] = host.FULL_MAY_BE
        self.place.fill()
        self.work(self.dice.randint(200, 1500))
        if self.dice.random() < 0.5:
            self.kill_muninnd()
            self.work(100)
        self.place.empty()
        self.wait_for_room()
        self.check()
        self.control[host.FLAGS] = 0

    def wait_for_room(self):
        """The service looks now and then whether the host has space again."""
        limit = time.monotonic() + LIMIT_SECONDS
        refused = None
        while refused != self.control.refusals():
            if time.monotonic() > limit:
                raise Failed("the host has space again, and commands are still refused")
            refused = self.control.refusals()
            self.work(300)

    def fail_host(self):
        """The host loses its power: what it had not brought to its drive is gone."""
        os.kill(self.tgtd(), signal.SIGSTOP)
        self.place.fail()
        self.daemon.kill()
        self.place.unmount()
        self.place.mount()
        self.control[host.HOST_FAILURES] += 1
        self.control.new_host(self.control[host.HOST_FAILURES])
        self.start()

    def squeeze_memory(self):
        """May end in the kernel's kill, of either of them."""
        self.memory.squeeze(self.dice.choice((256 << 10, 1 << 20, 4 << 20, 16 << 20)))
        try:
            self.work(self.dice.randint(100, 500), squeezed=True)
        finally:
            self.memory.relax()
        if self.daemon.running() and self.dice.random() < 0.5:
            return
        self.kill_muninnd()

    # ---- rounds ----

    def work(self, answers, squeezed=False):
        """Until initiators have had so many more answers, or one has ended. `squeezed`: or the service, or it gets slow."""
        goal, limit = self.control.answers() + answers, time.monotonic() + LIMIT_SECONDS
        while self.control.answers() < goal:
            if any(initiator.process.poll() for initiator in self.initiators):
                return  # the check says what is wrong
            if squeezed and (not self.daemon.running() or not children_of(self.daemon.process.pid)):
                return
            if squeezed and time.monotonic() > limit - LIMIT_SECONDS + SQUEEZED_SECONDS:
                return
            if time.monotonic() > limit:
                raise Failed(f"initiators get no answers for {LIMIT_SECONDS} s")
            time.sleep(0.005)

    def check(self):
        for initiator in self.initiators:
            initiator.say("check")
        self.counts = [initiator.counts() for initiator in self.initiators]
        self.read_log()

    def round(self):
        self.work(self.dice.randint(*ROUND_ANSWERS))
        torment = self.dice.choices(list(self.weights), list(self.weights.values()))[0]
        self.last = torment.__name__
        torment()
        self.torments[torment.__name__] += 1
        self.check()

    def end(self):
        for initiator in self.initiators:
            initiator.say("end")
            initiator.process.wait(LIMIT_SECONDS)
        self.stop(0)

    def clean_up(self):
        for initiator in self.initiators:
            if initiator.process.poll() is None:
                initiator.process.send_signal(signal.SIGCONT)
                initiator.kill()
        if self.daemon.running():
            self.daemon.kill()
        if self.memory:
            self.memory.close()
        self.place.close()

    def run(self, rounds=None, until=None):
        """So many rounds, or as many as there is time for. Raises Failed, with what repeats it."""
        try:
            self.begin()
            while rounds is None or self.torments.total() < rounds:
                if until is not None and time.monotonic() > until:
                    break
                self.round()
            self.end()
        except Exception as failure:
            log = "\n".join(self.daemon.errors[-30:])
            raise Failed(
                f"{self.world}, in round {self.torments.total() + 1} ({self.last}): {failure}\n{log}\n"
                f"repeat it by: tests/e2e/torture.py --seed {self.seed} --world {self.world} "
                f"--rounds {self.torments.total() + 1}"
            ) from failure
        finally:
            self.clean_up()
        return self.summary()

    def summary(self):
        """Counter of everything."""
        sums = collections.Counter(self.sums)
        for counts in self.counts:
            sums.update(counts)
        sums.update({name: self.control[index] for name, index in host.INJECTED.items()})
        sums["answers"] = self.control.answers()  # the counts of initiators go with those that are killed
        sums["host failures"] = self.control[host.HOST_FAILURES]
        return sums


def torture(seed, world, rounds=None, seconds=None):
    """Tortures one world. Returns (what was done how often, what was counted); raises NotPossible or Failed."""
    parent = os.path.join(BUILD, "e2e")
    os.makedirs(parent, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="torture-", dir=parent)
    try:
        run = Torture(seed, world, folder)
        sums = run.run(rounds, time.monotonic() + seconds if seconds else None)
        return run.torments, sums
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def text_of(counter):
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(counter.items()) if count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="in all, without --rounds (default 600)")
    parser.add_argument("--rounds", type=int, help="of each world")
    parser.add_argument("--seed", type=int, default=int(time.time()) & 0xFFFFFF)
    parser.add_argument("--world", action="append", choices=WORLDS, help="default: all of them")
    options = parser.parse_args()
    worlds = options.world or WORLDS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which cleans up
    all_torments, all_sums, skipped = collections.Counter(), collections.Counter(), []
    print(f"seed {options.seed}", flush=True)
    for world in worlds:
        seconds = None if options.rounds else options.seconds / len(worlds)
        try:
            torments, sums = torture(options.seed, world, options.rounds, seconds)
        except NotPossible as reason:
            skipped.append(world)
            print(f"{world}: NOT POSSIBLE HERE: {reason}", flush=True)
            continue
        except Failed as failure:
            print(failure, file=sys.stderr)
            return 1
        print(f"{world}: {text_of(torments)}\n  {text_of(sums)}", flush=True)
        all_torments += torments
        all_sums += sums
    print(f"all: {all_torments.total()} torments: {text_of(all_torments)}\n  {text_of(all_sums)}")
    print(f"nothing wrong, nothing lost{'; not possible here: ' + ', '.join(skipped) if skipped else ''}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
