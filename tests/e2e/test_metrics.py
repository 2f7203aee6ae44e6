# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What Prometheus and browsers get: metrics whose numbers are those of `status`, the status page, and what is bounded."""

import html.parser
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import IQN, LIMIT_SECONDS, MUNINNCTL, ROOT, free_port, noise
from iscsi import Session
from service import HOST, OTHER, POOL, ServiceTest

SANITIZED = True
CONNECTIONS = 16  # at once
SAMPLE = re.compile(r'(muninn_[a-z_]+)(\{[a-z]+="[^"\\]*"(?:,[a-z]+="[^"\\]*")*\})? (\d+(?:\.\d{6})?)')
EMPTY = {"meta", "br", "hr"}
MAP = "<title>segments "  # of its fields

CHROMIUM = shutil.which("chromium")
# Leaves in the title how a browser has laid the page out.
MEASURES = """<script>
const fields = [...document.querySelectorAll(".map rect")].map(each => each.getBoundingClientRect().width);
const tops = [...document.querySelectorAll(".cards")].pop().children;
document.title = JSON.stringify({window: innerWidth, content: document.documentElement.scrollWidth,
    fields: fields.length, smallest: Math.min(...fields),
    columns: new Set([...tops].map(each => each.offsetLeft)).size});
</script>"""


class Page(html.parser.HTMLParser):
    """A document whose elements are closed in order; its words, and what it refers to."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.references, self.names = [], [], [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.references += [value for name, value in attrs if name in ("src", "href", "action", "data")]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.words.append(data)


class Metrics(ServiceTest):
    def served(self, config=POOL, **options):
        self.port = free_port()
        text = f"[daemon]\nmetrics = 127.0.0.1:{self.port}\n" + config.replace("[daemon]\n", "")
        return self.serve(text, **options)

    def get(self, path, method="GET", headers=None):
        """(status, headers, text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def samples(self):
        """{(name, labels): value}, of a text of the right form."""
        status, headers, text = self.get("/metrics")
        self.assertEqual(status, 200)
        self.assertIn("text/plain; version=0.0.4", headers["Content-Type"])
        found, described, current = {}, [], None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                described.append(line.split()[2])
            elif line.startswith("# TYPE "):
                _, _, current, kind = line.split()
                self.assertEqual(current, described[-1])
                self.assertEqual(current.endswith("_total"), kind == "counter", line)
            else:
                name, labels, value = SAMPLE.fullmatch(line).groups()
                self.assertEqual(re.sub("_(bucket|sum|count)$", "", name) if kind == "histogram" else name, current)
                self.assertNotIn((name, labels), found)
                found[name, labels] = float(value) if "." in value else int(value)
        self.assertEqual(len(described), len(set(described)))
        return found

    def until(self, condition):
        """Samples for which this holds: the service may give the same again for a second."""
        while not condition(found := self.samples()):
            pass
        return found

    def page_with(self, *texts):
        """The status page as soon as it has all of these: who does not answer in time is asked again, for a map in 60 s."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while missing := [each for each in texts if each not in (page := self.get("/")[2])]:
            self.assertLess(time.monotonic(), deadline, f"{missing} in {page}")
            time.sleep(0.2)
        return page

    def test_the_numbers_are_those_of_status(self):
        daemon = self.served()
        disk, data = self.attach(daemon, 2, name=HOST), noise(65536, 1)
        for _ in range(5):
            self.good(disk.write(0, data))
        written, count = ("muninn_unit_bytes_total", '{lun="2",direction="written"}'), ("muninn_unit_commands_total", '{lun="2",kind="write"}')
        found = self.until(lambda each: each[written] >= 5 * 65536)
        unit = self.units(daemon)[2]
        self.assertEqual(found[count], unit["writes"])
        self.assertGreaterEqual(found[count], 5)
        for name, fact in (
            ("capacity_bytes", "capacity_bytes"),
            ("used_bytes", "used_bytes"),
            ("record_bytes_put_total", "record_bytes_put"),
            ("index_bytes", "index_bytes"),
            ("nvram_bytes", "buffer_bytes"),
            ("segment_bytes", "segment_bytes"),
        ):
            self.assertEqual(found["muninn_device_" + name, '{device="pool"}'], unit[fact], name)
        self.assertGreater(unit["record_bytes_put"], 5 * 65536)
        self.assertEqual(unit["segment_bytes"], 1 << 20)
        self.assertEqual(found["muninn_sessions", f'{{target="{IQN}"}}'], 1)
        self.assertEqual(found["muninn_unit_up", '{lun="1",type="osd"}'], 1)
        self.assertEqual((found["muninn_tgtd_up", None], found["muninn_tgtd_restarts_total", None]), (1, 0))
        self.sense(disk.write(64 << 11, bytes(512)), 5, 0x2100)
        key = ("muninn_unit_sense_total", '{lun="2",key="illegal_request"}')
        before = found[key]
        found = self.until(lambda each: each[key] == before + 1)
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("initiators can log in")
        again = self.until(lambda each: each["muninn_tgtd_restarts_total", None] == 1)
        self.assertEqual(again[count], 0)
        self.assertEqual(daemon.stop(), 0)

    def test_each_command_is_in_one_class_of_how_long_it_took(self):
        daemon = self.served()
        disk, name = self.attach(daemon, 2, name=HOST), "muninn_unit_command_seconds"

        def classes(found, kind):
            return [value for (each, labels), value in found.items() if each == name + "_bucket" and f'"2",kind="{kind}"' in labels]

        before = self.samples()
        for _ in range(20):
            self.good(disk.write(0, noise(4096, 1)))
        for _ in range(10):
            self.good(disk.read(0, 8))
        counts = {kind: f'{{lun="2",kind="{kind}"}}' for kind in ("read", "write", "both")}
        found = self.until(lambda each: each[name + "_count", counts["read"]] == before[name + "_count", counts["read"]] + 10)
        self.assertEqual(found[name + "_count", counts["write"]], before[name + "_count", counts["write"]] + 20)
        self.assertEqual(found[name + "_count", counts["both"]], 0)
        for kind, command in (("read", "read"), ("write", "write"), ("both", "both")):
            self.assertEqual(found[name + "_count", counts[kind]], found["muninn_unit_commands_total", f'{{lun="2",kind="{command}"}}'])
            self.assertEqual(classes(found, kind), sorted(classes(found, kind)))
            self.assertEqual(classes(found, kind)[-1], found[name + "_count", counts[kind]])
        self.assertGreater(found[name + "_sum", counts["write"]], before[name + "_sum", counts["write"]])
        self.assertEqual(daemon.stop(), 0)

    def test_what_a_session_has_done_stays_counted_when_it_ends(self):
        daemon = self.served()
        first, second = (self.attach(daemon, 2, name=name) for name in (HOST, OTHER))
        data = noise(65536, 1)
        before = self.units(daemon)[2]
        for disk, writes in ((first, 7), (second, 3)):
            for _ in range(writes):
                self.good(disk.write(0, data))
            self.good(disk.read(0, 128))
            self.good(disk.session.run(bytes(6)))
            self.sense(disk.write(64 << 11, bytes(512)), 5, 0x2100)
        # Nobody has looked meanwhile.
        first.session.logout()
        self.good(second.write(0, data))
        after = self.units(daemon)[2]
        grown = {fact: after[fact] - before[fact] for fact in ("writes", "reads", "errors", "written_bytes", "read_bytes")}
        self.assertEqual(
            grown, {"writes": 13, "reads": 2, "errors": 2, "written_bytes": 11 * 65536 + 1024, "read_bytes": 2 * 65536}
        )
        second.session.logout()
        found = self.until(lambda each: each["muninn_sessions", f'{{target="{IQN}"}}'] == 0)
        self.assertEqual(found["muninn_unit_commands_total", '{lun="2",kind="write"}'], after["writes"])
        self.assertEqual(found["muninn_unit_bytes_total", '{lun="2",direction="written"}'], after["written_bytes"])
        self.assertEqual(daemon.stop(), 0)

    def test_a_tgtd_that_hangs_or_is_gone_is_told(self):
        daemon = self.served("[daemon]\nwatchdog = 300\n" + POOL)
        self.samples()
        os.kill(daemon.tgtd_pid, signal.SIGSTOP)
        self.until(lambda each: each["muninn_unit_up", '{lun="2",type="disk"}'] == 0)
        self.assertIn("it was not asked", self.get("/")[2])
        os.kill(daemon.tgtd_pid, signal.SIGCONT)
        self.until(lambda each: each["muninn_unit_up", '{lun="2",type="disk"}'] == 1)

    def test_the_page_stands_by_itself_and_has_the_numbers(self):
        daemon = self.served(f"[target]\nallow_name = {HOST}\n" + POOL)
        disk = self.attach(daemon, 2, name=HOST)
        self.good(disk.write(0, noise(1 << 20, 1)))
        # Somebody who is refused chooses what the log says of him.
        with self.assertRaises(Exception):
            Session(daemon.port, IQN, 1, name="iqn.2026-11.host:<script>alert(1)</script>")
        daemon.wait_for_line("refused a login")
        status, headers, text = self.get("/")
        while "refused a login" not in text:
            status, headers, text = self.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        page = Page(text)
        self.assertEqual((page.open, page.references), ([], []))
        self.assertFalse(page.names & {"script", "img", "link", "iframe", "form"})
        self.assertNotRegex(text, r"url\(|@import|https?:")
        words = " ".join(" ".join(page.words).split())
        for expected in ("LUN 2 disk size 64.0 MiB volume 0x10002 sessions 1", "pool used", "written 1.0 MiB", IQN):
            self.assertIn(expected, words)
        # It fits a phone: what is wider than a word is broken, and cards go below each other.
        self.assertIn('content="width=device-width, initial-scale=1"', text)
        self.assertIn("repeat(auto-fill,minmax(17rem,1fr))", text)
        self.assertEqual(daemon.stop(), 0)

    def test_the_page_shows_flash_versions_and_sessions(self):
        daemon = self.served()
        disk = self.attach(daemon, 2, name=HOST)
        for at in range(4):
            self.good(disk.write(at << 10, noise(1 << 19, at)))
        url = f"iscsi://127.0.0.1:{daemon.port}/{IQN}/1"
        self.assertEqual(subprocess.run([MUNINNCTL, "snapshot", url, "0x10002", "--name", "a < b"]).returncode, 0)
        self.assertEqual(subprocess.run([MUNINNCTL, "snapshot", url, "0", "--name", "all"]).returncode, 0)
        free = [self.units(daemon)[1]["segments_free"]]
        text = self.page_with(MAP, f"<tr><td>{HOST}</td><td>127.0.0.1</td><td>2</td></tr>")
        page = Page(text)
        self.assertEqual((page.open, page.references), ([], []))
        self.assertIn("</td><td>0x10002</td><td>1</td><td>a &lt; b</td><td>2.0 MiB</td>", text)
        fields = [tuple(map(int, each)) for each in re.findall(r"<title>segments (\d+) to (\d+): (\d+) free, (\d+) sealed", text)]
        self.assertTrue(0 < len(fields) <= 256)
        unit = self.units(daemon)[1]
        self.assertEqual((fields[0][0], fields[-1][1] + 1), (0, unit["segments"]))
        # The device may seal some meanwhile.
        free.append(unit["segments_free"])
        self.assertTrue(free[1] <= sum(each[2] for each in fields) <= free[0])
        device = '{device="pool"}'
        found = self.until(lambda each: ("muninn_device_available_bytes", device) in each)
        held = {what: found["muninn_device_held_bytes", f'{{device="pool",what="{what}"}}'] for what in ("present", "kept", "history", "reclaimable")}
        self.assertGreater(held["present"], 2 << 20)
        self.assertEqual(found["muninn_device_versions", device], 1)
        self.assertEqual(
            found["muninn_device_available_bytes", device],
            found["muninn_device_capacity_bytes", device] - found["muninn_device_used_bytes", device] + held["history"] + held["reclaimable"],
        )
        self.assertEqual(daemon.stop(), 0)

    @unittest.skipUnless(CHROMIUM, "chromium is not installed")
    def test_the_page_fits_a_desk_and_a_phone(self):
        daemon = self.served()
        self.good(self.attach(daemon, 2, name=HOST).write(0, noise(1 << 20, 1)))
        text, folder = self.page_with(MAP), self.folder()
        self.assertNotIn("<script", text)
        with open(os.path.join(folder, "page.html"), "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", MEASURES + "</body>"))
        for width in (1280, 500):
            done = subprocess.run(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/{width}"]
                + [f"--window-size={width},900", "--dump-dom", f"file://{folder}/page.html"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_SECONDS, check=True,
            )
            measured = json.loads(re.search(r"<title>(\{.*?\})</title>", done.stdout.decode()).group(1))
            self.assertEqual(measured["window"], width)
            self.assertLessEqual(measured["content"], width)
            self.assertGreater(measured["fields"], 0)
            self.assertGreater(measured["smallest"], 5)
            # Beside each other where there is room, else below each other.
            self.assertEqual(measured["columns"] > 1, width > 600)
        self.assertEqual(daemon.stop(), 0)

    def test_there_is_nothing_else(self):
        self.served()
        self.assertEqual(self.get("/etc/passwd")[0], 404)
        self.assertEqual(self.get("/metrics", "POST")[0], 405)
        status, headers, text = self.get("/metrics", "HEAD")
        self.assertEqual((status, text), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 1000)
        try:
            self.assertIn(self.get("/metrics", headers={"X-Large": "x" * 65536})[0], (400, 413, 414, 431))
        except (ConnectionError, http.client.HTTPException):
            pass
        self.samples()

    def test_who_says_nothing_holds_up_nobody(self):
        daemon = self.served()
        silent = []
        for i in range(2 * CONNECTIONS):
            silent.append(socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_SECONDS))
            self.addCleanup(silent[-1].close)
            if i % 2:
                silent[-1].sendall(b"GET /metr")
        # Neither administrators nor initiators.
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        self.good(self.attach(daemon, 2).read(0, 1))
        # Each is shown out after a while.
        self.samples()
        self.assertEqual(daemon.stop(), 0)

    def test_it_is_off_unless_it_is_set_and_refused_where_it_can_not_be(self):
        daemon = self.serve()
        self.assertEqual(self.admin(daemon, "status")["process"], daemon.process.pid)
        taken = self.daemon(config=f"[daemon]\nmetrics = 127.0.0.1:{daemon.port}\n" + POOL)
        code, errors = taken.run()
        self.assertEqual(code, 1)
        self.assertIn(f"metrics: cannot listen on 127.0.0.1:{daemon.port}: Address already in use", errors)
        elsewhere = self.daemon(config="[daemon]\nmetrics = 192.0.2.1:9\n" + POOL)
        for arguments in ([], ["--check-config"]):
            elsewhere.command += arguments
            code, errors = elsewhere.run()
            self.assertEqual(code, 1)
            self.assertIn("metrics: cannot listen on 192.0.2.1:9: Cannot assign", errors)

    def test_alerts_and_dashboard_name_metrics_that_there_are(self):
        self.served()
        names = {name for name, _ in self.samples()}
        with open(os.path.join(ROOT, "conf", "dashboard.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        with open(os.path.join(ROOT, "conf", "alerts.yml"), encoding="utf-8") as file:
            alerts = file.read()
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries += re.findall(r"^ *expr: (.*)$", alerts, re.M)
        self.assertGreater(len(queries), 15)
        for query in queries:
            used = set(re.findall(r"muninn_[a-z_]+", query))
            # `up` is Prometheus' own: whether a host answers at all.
            self.assertTrue(used or query == 'up{job="muninn"} == 0', query)
            self.assertEqual(used - names, set(), query)


if __name__ == "__main__":
    unittest.main()
