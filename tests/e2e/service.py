# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A service that is administered on its own host, over its socket."""

import json
import os
import socket

from disks import POOL, DiskCase

HOST, OTHER = "iqn.2026-11.host:a", "iqn.2026-11.host:b"


class ServiceTest(DiskCase):
    def serve(self, config=POOL, **options):
        return self.daemon(config=config, **options).start()

    @staticmethod
    def socket_of(daemon):
        return os.path.join(daemon.state_dir, "admin")

    def admin(self, daemon, *arguments):
        """What a verb answers."""
        return json.loads(self.ctl("--json", *arguments, "--socket", self.socket_of(daemon)) or "null")

    def lines(self, daemon, *arguments):
        """What a verb prints for people."""
        return self.ctl(*arguments, "--socket", self.socket_of(daemon))

    def refused(self, daemon, code, *arguments):
        """Why a verb is refused, with this exit code."""
        done = self.try_ctl(*arguments, "--socket", self.socket_of(daemon))
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.decode()

    def ask(self, daemon, request):
        """What the socket answers to bytes, without muninnctl between."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(120)
            asking.connect(self.socket_of(daemon))
            try:
                asking.sendall(request)
                answer = b""
                while got := asking.recv(65536):
                    answer += got
            except (BrokenPipeError, ConnectionResetError):
                return b""
            return answer

    def with_tgtd_of_its_own(self, config, **options):
        """A daemon whose tgtd is a link in its folder, and that link: without it, tgtd is not started again."""
        folder = self.folder()
        link = os.path.join(folder, "tgtd")
        os.symlink("/usr/sbin/tgtd", link)
        return self.daemon(folder, config=f"[daemon]\ntgtd = {link}\n" + config, **options), link

    def units(self, daemon):
        return {unit["lun"]: unit for unit in self.admin(daemon, "status")["units"]}

    @staticmethod
    def settle(disk):
        """Hears that there are other units now (3F/0E)."""
        while disk.session.run(bytes(6)).status:
            pass

    def rewrite(self, daemon, config):
        with open(daemon.config_path, "w", encoding="utf-8") as file:
            file.write(config)
