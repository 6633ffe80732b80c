"""./gradus sysroot and GRADUS_SYSROOT: packages collected and unpacked. apt is made up; the packages are made here."""
import contextlib
import io
import json
import lzma
import os
import pathlib
import shutil
import tarfile
import tempfile
import unittest
from unittest import mock

import made  # noqa: F401  (finds the driver)
from driver import __main__ as command_line
from driver import build, packages, shell, sysroot

# Knows four packages; "download" takes them from $STATE.
APT = """#!/bin/sh
case "$*" in *download*)
  for name in "$@"; do [ -e "$STATE/$name.deb" ] && cp "$STATE/$name.deb" "${name}_1%3a1.0_amd64.deb"; done ;;
esac
exit 0
"""
SHOW = """#!/bin/sh
for name in "$@"; do :; done
case $name in
  libmade-dev) echo "Package: $name"; echo "Depends: libmade1 (= 1.0), libc6-dev | libc-dev, libother:any" ;;
  libmade1) echo "Package: $name"; echo "Depends: libc6 (>= 2.34), libstdc++6 (>= 12), libgcc-s1" ;;
  libother) echo "Package: $name"; echo "Description: needs libnothing" ;;
  dataset) echo "Package: $name" ;;
  *) exit 100 ;;
esac
"""


def ar(*members):
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
    return out


def deb(files, compression="xz"):
    """A Debian package of {path: text}."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo("./" + path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
        for name, target in (("./usr/lib/libx.so", "/lib/libx.so.1"), ("./lib/libx.so.1", "libx.so.1.0")):  # as zlib's
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        library = tarfile.TarInfo("./lib/libx.so.1.0")
        library.size = 7
        tar.addfile(library, io.BytesIO(b"library"))
    packed = {"xz": lzma.compress, "zst": lambda _: b"zstd"}[compression](data.getvalue())
    return ar(("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (f"data.tar.{compression}", packed))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        base = pathlib.Path(folder.name)
        self.state, self.debs, self.tree = base / "state", base / "debs", base / "build" / "sysroot"
        bin_folder = base / "bin"
        for path in (self.state, bin_folder):
            path.mkdir()
        for name, text in (("apt-get", APT), ("apt-cache", SHOW)):
            (bin_folder / name).write_text(text)
            (bin_folder / name).chmod(0o755)
        for tool in ("sh", "cp"):
            (bin_folder / tool).symlink_to(shutil.which(tool))
        for name in ("libmade-dev", "libmade1", "libother", "dataset"):
            path = sysroot.DATA + "/t10k" if name == "dataset" else f"usr/share/{name}"
            (self.state / f"{name}.deb").write_bytes(deb({path: name}))
        for patch in (mock.patch.dict(os.environ, {"PATH": str(bin_folder), "STATE": str(self.state)}),
                      mock.patch.object(packages, "TEST", ["g++", "libmade-dev", "dataset"]), mock.patch.object(sysroot, "TREE", self.tree)):
            patch.start()
            self.addCleanup(patch.stop)
        for name in ("GRADUS_SYSROOT", "GRADUS_DATA"):
            os.environ.pop(name, None)

    def said(self, *arguments, status=0):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            self.assertEqual(command_line.main(list(arguments)), status, out.getvalue())
        return out.getvalue()

    def collected(self):
        self.said("sysroot", str(self.debs))
        os.environ["GRADUS_SYSROOT"] = str(self.debs)

    def unpacked(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            sysroot.use()
        return out.getvalue()


class Collect(Case):
    def test_what_the_build_needs_but_no_compiler(self):
        self.debs.mkdir()
        (self.debs / "old_1.0_amd64.deb").touch()
        self.assertIn("4 packages", self.said("sysroot", str(self.debs)))
        manifest = json.loads((self.debs / sysroot.MANIFEST).read_text())
        self.assertEqual(sorted(manifest["packages"]), [f"{name}_1%3a1.0_amd64.deb" for name in ("dataset", "libmade-dev", "libmade1", "libother")])
        self.assertEqual(manifest["machine"], os.uname().machine)

    def test_what_cannot_be_collected(self):
        with mock.patch.object(sysroot, "LIMIT", 100):
            self.assertIn("0 MB are the limit", self.said("sysroot", str(self.debs), status=1))
        (self.state / "libother.deb").unlink()
        self.assertIn("could not download all of dataset libmade-dev libmade1 libother", self.said("sysroot", str(self.debs), status=1))
        with mock.patch.object(packages, "TEST", ["libnone"]):
            self.assertIn("apt knows no package libnone", self.said("sysroot", str(self.debs), status=1))
        with mock.patch.object(shutil, "which", lambda _: None):
            self.assertIn("which this system has not", self.said("sysroot", str(self.debs), status=2))


class Unpack(Case):
    def test_once_and_its_data_is_found(self):
        self.collected()
        self.assertIn("Unpacking 4 packages", self.unpacked())
        self.assertEqual((self.tree / "usr/share/libmade1").read_text(), "libmade1")
        self.assertEqual((self.tree / "usr/lib/libx.so").resolve(), (self.tree / "usr/lib/libx.so.1.0").resolve())
        self.assertEqual((self.tree / "usr/lib/libx.so").read_text(), "library")
        self.assertEqual(os.environ["GRADUS_DATA"], str(self.tree / sysroot.DATA))
        self.assertEqual(self.unpacked(), "")
        self.assertEqual(build.options_for([], "OFF")["GRADUS_SYSROOT"], str(self.tree))
        self.assertIs(packages.ensure(["libmade-dev"], "x"), True)  # apt is not asked

    def test_other_packages_replace_the_tree(self):
        self.collected()
        self.unpacked()
        (self.state / "libmade1.deb").write_bytes(deb({"usr/share/libmade1": "newer"}))
        self.collected()
        self.unpacked()
        self.assertEqual((self.tree / "usr/share/libmade1").read_text(), "newer")

    def test_data_of_ones_own_wins(self):
        self.collected()
        os.environ["GRADUS_DATA"] = "/mine"
        self.unpacked()
        self.assertEqual(os.environ["GRADUS_DATA"], "/mine")

    def test_a_tree_is_used_as_it_is(self):
        (self.debs / "usr").mkdir(parents=True)
        os.environ["GRADUS_SYSROOT"] = str(self.debs)
        self.assertEqual(sysroot.root(), self.debs)
        os.environ["GRADUS_SYSROOT"] = ""
        self.assertIs(sysroot.root(), None)

    def test_what_cannot_be_unpacked(self):
        os.environ["GRADUS_SYSROOT"] = str(self.state)
        self.assertIn("is no folder that ./gradus sysroot made", self.said("doctor", status=2))
        self.collected()
        broken = self.debs / "libother_1%3a1.0_amd64.deb"
        whole = broken.read_bytes()
        broken.write_bytes(whole[:-10])
        self.assertIn("is damaged; copy the folder again", self.said("doctor", status=1))
        broken.unlink()
        self.assertIn("is missing", self.said("doctor", status=1))
        broken.write_bytes(whole)
        with mock.patch.object(os, "uname", lambda: mock.Mock(machine="riscv64")):
            self.assertIn("this machine is riscv64", self.said("doctor", status=2))
        self.unpacked()

    def test_packages_of_other_forms(self):
        for content, words in ((b"<html>", "is no Debian package"), (ar(("debian-binary", b"2.0\n")), "holds no data.tar"),
                               (deb({}, "zst"), "needs dpkg-deb or zstd")):
            path = self.state / "odd.deb"
            path.write_bytes(content)
            with self.assertRaisesRegex(shell.Failure, words):
                sysroot.unpack(path, self.tree)


class RealPackages(unittest.TestCase):
    @unittest.skipUnless(shutil.which("dpkg-deb"), "no dpkg-deb")
    def test_dpkg_and_python_unpack_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "package"
            (package / "DEBIAN").mkdir(parents=True)
            (package / "DEBIAN/control").write_text("Package: made\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n")
            (package / "usr").mkdir()
            (package / "usr/file").write_text("text")
            (package / "usr/link").symlink_to("file")
            made_deb = pathlib.Path(folder) / "made.deb"
            self.assertNotEqual(shell.output_of(["dpkg-deb", "-Zxz", "--root-owner-group", "-b", package, made_deb]), "")
            for name, which in (("dpkg", shutil.which), ("python", lambda tool: None)):
                with mock.patch.object(shutil, "which", which):
                    sysroot.unpack(made_deb, pathlib.Path(folder) / name)
                self.assertEqual((pathlib.Path(folder) / name / "usr/link").read_text(), "text")


if __name__ == "__main__":
    unittest.main()
