# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A guest with the distribution's kernel, whose own iSCSI initiator attaches (`scripts/guest` makes it). QEMU emulates the
processor too, so nothing of the host is needed; a guest boots in five seconds of a processor."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import threading

from harness import BUILD, IQN, LIMIT_SECONDS, ROOT, E2ETest, free_port

QEMU = "qemu-system-x86_64"
# The host's loopback, as a guest sees it.
HOST = "10.0.2.2"
MEMORY_MIB = 256
# Only a hang gets there: an emulated processor that has to share the host's is slow.
GUEST_LIMIT_SECONDS = 5 * LIMIT_SECONDS
ENDED = re.compile(r"scenario ended with (\d+)")

# What scenarios call. `attach` needs no discovery, which tgtd answers with the address of its end.
FUNCTIONS = f"""
attach() {{ # IQN PORT [NAME SECRET]
	node="iscsiadm -m node -T $1 -p {HOST}:$2"
	$node,1 -o new >/dev/null || return
	if [ $# -gt 2 ]; then
		$node -o update -n node.session.auth.authmethod -v CHAP
		$node -o update -n node.session.auth.username -v "$3"
		$node -o update -n node.session.auth.password -v "$4"
	fi
	$node --login >/dev/null
}}
detach() {{ iscsiadm -m node --logout >/dev/null; }}
until_it_works() {{ # COMMAND...: until it succeeds
	for i in $(seq 1000); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done
	echo "never succeeded: $*"
	return 1
}}
unit() {{ # TYPE, as SCSI numbers it: the name of the node of the first unit of it
	for each in /sys/class/scsi_generic/sg*; do
		[ "$(cat $each/device/type 2>/dev/null)" = "$1" ] && echo "/dev/${{each##*/}}" && return
	done
	return 1
}}
load() {{ for module in /modules/$1/*; do insmod $module; done; }} # NAME: modules that wait for it
disk() {{ ls /dev/sd? 2>/dev/null | head -1 | grep .; }} # fails while there is none
host() {{ echo "$1"; nc {HOST} $GO_PORT </dev/null; }} # WORDS: until the host has done what they ask for
OSD=17
"""


def make():
    """Makes the guest, unless it is there."""
    folder = os.path.join(BUILD, "guest")
    done = subprocess.run([os.path.join(ROOT, "scripts", "guest"), folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"scripts/guest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return folder


def copy_with_libraries(program, folder):
    """A program into bin/ of `folder`, and its libraries to where it looks for them; returns their names there, with those of
    the folders that they are in."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    files = {"bin/" + os.path.basename(program): program}
    files.update({path.lstrip("/"): path for path in re.findall(r"(/\S+) \(0x", linked)})
    names = []
    for name, source in files.items():
        os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
        shutil.copy(source, os.path.join(folder, name))
        parts = name.split("/")
        names += ["/".join(parts[:n]) for n in range(1, len(parts))]
        names.append(name)
    return names


class Guest:
    """One run of a scenario: a shell script, whose first failing command ends it."""

    def __init__(self, folder, scenario, programs=(), **variables):
        """`folder`: for files of this run; `programs`: that the guest gets besides its own; `variables`: of the script."""
        base, initrd = make(), os.path.join(folder, "initrd")
        with open(os.path.join(folder, "scenario"), "w", encoding="utf-8") as file:
            file.writelines(f"{name}='{value}'\n" for name, value in {"IQN": IQN, **variables}.items())
            file.write(FUNCTIONS + "set -e\n" + scenario)
        names = ["scenario", *(name for program in programs for name in copy_with_libraries(program, folder))]
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], input="".join(name + "\n" for name in dict.fromkeys(names)).encode(),
            cwd=folder, stdout=subprocess.PIPE, check=True,
        )
        # The kernel unpacks one archive after the other.
        with open(initrd, "wb") as to, open(os.path.join(base, "base.cpio"), "rb") as source:
            to.write(source.read() + archive.stdout)
        # The kernel's check of its timer fails where others have the processor for long. Its tests
        # of its own ciphers, and its precautions against other users, only take time.
        options = "console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests mitigations=off"
        self.lines = []
        self.said = threading.Condition()
        self.process = subprocess.Popen(
            [QEMU, "-M", "q35", "-cpu", "max", "-accel", "tcg,thread=multi", "-m", str(MEMORY_MIB), "-smp", "1"]
            + ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio"]
            + ["-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0,romfile="]
            + ["-kernel", os.path.join(base, "kernel"), "-initrd", initrd, "-append", options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.said:
                self.lines.append(line.rstrip())
                self.said.notify_all()
        self.process.stdout.close()
        with self.said:
            self.lines.append("")
            self.said.notify_all()

    def wait_for(self, text):
        """Waits until the scenario has said this."""
        with self.said:
            if not self.said.wait_for(lambda: any(text in line for line in self.lines) or not self.reader.is_alive(), GUEST_LIMIT_SECONDS):
                raise AssertionError(f"the guest never said {text!r}:\n" + "\n".join(self.lines))
        if not any(text in line for line in self.lines):
            raise AssertionError(f"the guest ended without {text!r}:\n" + "\n".join(self.lines))

    def finish(self):
        """Waits for its end; returns what it said. Fails when the scenario has failed."""
        try:
            self.process.wait(GUEST_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        self.end()
        text = "\n".join(self.lines)
        code = ENDED.search(text)
        if not code or code.group(1) != "0":
            raise AssertionError("the scenario failed in the guest:\n" + text)
        return text

    def end(self):
        """Switches it off, if it still runs."""
        self.process.kill()
        self.process.wait()
        self.reader.join()


class Cable:
    """Passes connections on to an address of the host, which a guest can't reach by itself, until it is cut.

    While it is cut, it refuses connections. It does not take them to end them at once: open-iscsi 2.1.8 never logs in
    again when its connection ends between two of the calls that prepare a login, and it would try without a pause."""

    def __init__(self, address):
        self.address = address
        # A port that the kernel gives to nobody else: it stays bound while the cable is cut.
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", free_port()))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.ends = set()  # of all connections, none of which is closed before it is taken out
        self.is_cut = True
        self.mend()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                with self.lock:
                    if self.is_cut:
                        return
                continue
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        """One connection, whose two ends end together."""
        with near, contextlib.suppress(OSError), socket.create_connection(self.address) as far:
            with self.lock:
                if self.is_cut:
                    return
                self.ends |= {near, far}
            back = threading.Thread(target=self._pass_on, args=(far, near), daemon=True)
            back.start()
            self._pass_on(near, far)
            back.join()
            with self.lock:
                self.ends -= {near, far}

    @staticmethod
    def _pass_on(source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                to.sendall(data)
        hang_up(source)
        hang_up(to)

    def cut(self):
        """Ends its connections, and refuses new ones."""
        with self.lock:
            self.is_cut = True
            hang_up(self.listener)
            for end in self.ends:
                hang_up(end)

    def mend(self):
        with self.lock:
            if not self.is_cut:
                return
            self.is_cut = False
            self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.cut()
        self.listener.close()


def hang_up(end):
    """Ends a connection, or the taking of connections. Whoever waits for it wakes; the number of the file stays taken."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


class GuestCase(E2ETest):
    """Base class: guests that go with the test."""

    def guest(self, scenario, programs=(), **variables):
        if not shutil.which(QEMU):
            self.skipTest(f"{QEMU} is not installed: run scripts/bootstrap guest")
        machine = Guest(self.folder("guest"), scenario, programs, **variables)
        self.addCleanup(machine.end)
        return machine

    def bell(self):
        """What `host` in a scenario rings at: (listener, its port)."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        return listener, listener.getsockname()[1]

    def assert_nobody_was_refused(self, daemon):
        ended = [line for line in daemon.errors if "ended" in line and "connection" in line]
        self.assertEqual(ended, [], "the guard ended a connection of a kernel that does nothing wrong")
