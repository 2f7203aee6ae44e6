# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Somebody who writes one number after the other, while a test does something else."""

import threading

from harness import LIMIT_SECONDS


class Counting:
    """Calls step(1), step(2), … in a thread. Its end raises what a step has raised."""

    def __init__(self, step):
        self._step, self._failure, self._count, self._ends = step, None, 0, False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with self._changed:
            self._ends = True
        self._thread.join()
        if self._failure:
            raise self._failure

    def wait_for_more(self):
        """
        Waits until what is read now is further than what was read before. Two steps: the one that is under way may have
        written already.
        """
        with self._changed:
            wanted = self._count + 2
            if not self._changed.wait_for(lambda: self._failure or self._count >= wanted, LIMIT_SECONDS):
                raise TimeoutError(f"{self._count} steps, {wanted} are waited for")
            if self._failure:
                raise AssertionError("nothing is counted any more") from self._failure

    def _run(self):
        try:
            while not self._ends:
                self._step(self._count + 1)
                with self._changed:
                    self._count += 1
                    self._changed.notify_all()
        except BaseException as failure:
            with self._changed:
                self._failure = failure
                self._changed.notify_all()
