"""gradus-run on two hosts: network namespaces of this machine with a cable (veth) between them. ctest label netns.

Exit status 77, skipped, with the reason, where namespaces may not be made.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHER = str(ROOT / "lib" / "driver" / "gradus-run")
SKIPPED = 77

# Rank 0 waits for all others at MASTER_ADDR:MASTER_PORT, tells them the sum of their ranks, and then waits for their ends.
PROGRAM = """\
import os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
hold = float(sys.argv[1])

def checked(data, peer):
    if not data: sys.exit(f"{peer} is gone")
    return data

if rank == 0:
    server = socket.create_server(place)
    server.settimeout(10)
    peers = [server.accept() for _ in range(size - 1)]
    for peer, _ in peers: peer.settimeout(3)
    total = sum(int(checked(peer.recv(16), where)) for peer, where in peers)
    for peer, _ in peers: peer.sendall(str(total).encode())
    print("met", sorted(where[0] for _, where in peers), "total", total)
    ends = [checked(peer.recv(16), where[0]) for peer, where in peers]
else:
    for attempt in range(100):  # rank 0 may begin later
        try: peer = socket.create_connection(place, timeout=3); break
        except ConnectionRefusedError: time.sleep(0.05)
    peer.sendall(str(rank).encode())
    print("total", peer.recv(16).decode(), "net", os.readlink("/proc/self/ns/net"))
    time.sleep(hold)
    peer.sendall(b"end")
"""


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


def why_not():
    """The reason why there can be no namespaces here; empty where there can."""
    if not shutil.which("ip"):
        return "there is no `ip` (Debian's package iproute2)"
    name = f"gradus-{os.getpid()}-try"
    made = ip("netns", "add", name)
    cable = ip("-n", name, "link", "add", "left", "type", "veth", "peer", "name", "right") if made.returncode == 0 else made
    ip("netns", "del", name)
    refused = re.search("not permitted|denied|not supported|read-only|unknown device type", cable.stderr, re.IGNORECASE)
    return f"network namespaces are not to be had here: {cable.stderr.strip()}" if refused else ""


class TwoHosts(unittest.TestCase):
    def setUp(self):
        self.hosts = [f"gradus-{os.getpid()}-{number}" for number in (0, 1)]
        for host in self.hosts:
            self.addCleanup(ip, "netns", "del", host)
            self.ip("netns", "add", host)
        self.ip("-n", self.hosts[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.hosts[1])
        for number, host in enumerate(self.hosts):
            self.ip("-n", host, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "cable")
            for device in ("lo", "cable"):
                self.ip("-n", host, "link", "set", device, "up")

    def ip(self, *arguments):
        done = ip(*arguments)
        self.assertEqual(done.returncode, 0, f"ip {' '.join(arguments)}: {done.stderr}")

    def begin(self, number, hold=0.0):
        command = ["ip", "netns", "exec", self.hosts[number], sys.executable, "-B", LAUNCHER, "--nproc-per-node", "2", "--nnodes",
                   "2", "--node-rank", str(number), "--master-addr", "10.77.0.1", sys.executable, "-c", PROGRAM, str(hold)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_four_ranks_on_two_hosts_meet(self):
        second = self.begin(1)
        first = self.begin(0)
        (out0, err0), (out1, err1) = first.communicate(timeout=20), second.communicate(timeout=20)
        self.assertEqual((first.returncode, second.returncode, err0, err1), (0, 0, "", ""))
        self.assertIn("[rank 0] met ['10.77.0.1', '10.77.0.2', '10.77.0.2'] total 6\n", out0)
        nets = {line.split()[1].rstrip("]"): line.split()[-1] for line in (out0 + out1).splitlines() if "net:" in line}
        self.assertEqual(set(nets), {"1", "2", "3"})
        self.assertEqual(nets["2"], nets["3"])
        self.assertNotEqual(nets["1"], nets["2"])

    def test_a_cable_that_is_cut_ends_the_job_on_the_host_that_notices(self):
        first, second = self.begin(0, hold=60), self.begin(1, hold=60)
        self.assertIn("met", first.stdout.readline() + first.stdout.readline())
        self.ip("-n", self.hosts[0], "link", "set", "cable", "down")
        start = time.monotonic()
        out, err = first.communicate(timeout=20)
        self.assertEqual(first.returncode, 1, out)
        self.assertIn("rank 0 failed", err)
        self.assertIn("TimeoutError", err)
        self.assertLess(time.monotonic() - start, 15)
        second.terminate()
        second.communicate(timeout=20)
        self.assertEqual(second.returncode, 143)
        left = [ip("netns", "pids", host).stdout.split() for host in self.hosts]
        self.assertEqual(left, [[], []])


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
