"""sysroot: the libraries that the build needs as .deb files in a folder, for a machine that can download nothing.

There, GRADUS_SYSROOT names that folder: every command unpacks it into build/sysroot, builds with it, and takes the data
set from it.
"""
import hashlib
import io
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

from . import packages, shell
from .shell import ROOT, Failure, say

LIMIT = 60e6  # bytes
TREE = ROOT / "build" / "sysroot"
MANIFEST = "packages.json"
DATA = "usr/share/datasets/fashion-mnist"

# What any C++ compiler brings, and must come from its own system.
COMPILER = re.compile(r"libc6.*|libc-dev.*|libgcc-s1|libstdc\+\+6|libgomp1|gcc-\d+-base|linux-libc-dev")


def wanted():
    """The packages of learn, test and bench that are not programs: those the machine has."""
    return [name for name in packages.TEST if name not in packages.PROGRAMS]


def needs(name):
    """What a package depends on, the first of alternatives."""
    text = shell.output_of(["apt-cache", "show", "--no-all-versions", name])
    if not text:
        raise Failure(f"sysroot: apt knows no package {name}: apt-get update, and then this command again")
    depends = re.search(r"^Depends: (.*)$", text, re.MULTILINE)
    return re.findall(r"(?:^|,)\s*([a-z0-9][a-z0-9.+-]+)", depends[1]) if depends else []


def closure(names):
    """`names` and what they need, without what a compiler brings."""
    found, left = [], list(names)
    while left:
        name = left.pop(0)
        if name not in found and not COMPILER.fullmatch(name):
            found.append(name)
            left += needs(name)
    return sorted(found)


def system():
    """(what the packages are of, its machine type)"""
    release = pathlib.Path("/etc/os-release")
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release.read_text(), re.MULTILINE) if release.exists() else None
    return name[1] if name else "unknown", os.uname().machine


def sysroot(options):
    """Collects the packages into a folder."""
    if not shutil.which("apt-get"):
        raise Failure("sysroot: collects packages with apt, which this system has not; run it on Debian or Ubuntu", 2)
    folder = pathlib.Path(options.folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.deb"):
        old.unlink()
    names = closure(wanted())
    process = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names], cwd=folder, check=False)
    files = sorted(folder.glob("*.deb"))
    if process.returncode != 0 or len(files) != len(names):
        raise Failure(f"sysroot: apt-get could not download all of {' '.join(names)}; its messages are above.")
    size = sum(file.stat().st_size for file in files)
    if size > LIMIT:
        raise Failure(f"sysroot: {size / 1e6:.0f} MB of packages, {LIMIT / 1e6:.0f} MB are the limit")
    of, machine = system()
    manifest = {"system": of, "machine": machine, "packages": {file.name: digest(file) for file in files}}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    say(f"{len(files)} packages of {of}, {size / 1e6:.0f} MB, in {folder}. Copy it to the other machine, and there:\n"
        f"  GRADUS_SYSROOT=<the folder> ./gradus gpu-check")
    return 0


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def root():
    """Where the libraries lie; None where GRADUS_SYSROOT is not set, and the system's are used."""
    named = os.environ.get("GRADUS_SYSROOT")
    return unpacked(pathlib.Path(named).absolute()) if named else None


def use():
    """Unpacks what GRADUS_SYSROOT names, once, and lets programs find its data. Every command begins with it."""
    tree = root()
    if tree:
        os.environ["GRADUS_SYSROOT"] = str(pathlib.Path(os.environ["GRADUS_SYSROOT"]).absolute())  # children run elsewhere
    if tree and (tree / DATA).exists():
        os.environ.setdefault("GRADUS_DATA", str(tree / DATA))


def unpacked(folder):
    """The unpacked tree of a folder of packages; the folder itself where it is such a tree."""
    if (folder / "usr").is_dir():
        return folder
    if not (folder / MANIFEST).exists():
        raise Failure(f"GRADUS_SYSROOT: {folder} is no folder that ./gradus sysroot made: it holds no {MANIFEST}", 2)
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    mark = TREE / MANIFEST  # written last
    if mark.exists() and json.loads(mark.read_text(encoding="utf-8")) == manifest:
        return TREE
    if manifest["machine"] != os.uname().machine:
        raise Failure(f"GRADUS_SYSROOT: the packages are for {manifest['machine']}, this machine is {os.uname().machine}", 2)
    say(f"Unpacking {len(manifest['packages'])} packages of {manifest['system']} into {TREE}")
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    for name, hashed in manifest["packages"].items():
        deb = folder / name
        if not deb.exists() or digest(deb) != hashed:
            raise Failure(f"GRADUS_SYSROOT: {deb} is {'damaged' if deb.exists() else 'missing'}; copy the folder again")
        unpack(deb, TREE)
    settle(TREE)
    mark.write_text(json.dumps(manifest), encoding="utf-8")
    return TREE


def settle(tree):
    """Packages think that they are at /, with a lib that is usr/lib: so it is made, and links are kept within the tree."""
    if (tree / "lib").is_dir() and not (tree / "lib").is_symlink():
        shutil.copytree(tree / "lib", tree / "usr" / "lib", symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(tree / "lib")
        (tree / "lib").symlink_to("usr/lib")
    for path in list(tree.rglob("*")):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            inside = os.path.relpath(tree / os.readlink(path)[1:], path.parent)
            path.unlink()
            path.symlink_to(inside)


def unpack(deb, tree):
    if shutil.which("dpkg-deb"):
        if shell.output_of(["sh", "-c", 'dpkg-deb -x "$0" "$1" && echo done', deb, tree]) != "done":
            raise Failure(f"dpkg-deb could not unpack {deb}")
        return
    name, content = data_member(deb.read_bytes(), deb)
    with tarfile.open(fileobj=io.BytesIO(decompressed(name, content, deb))) as archive:
        # As packages are: links that begin with / are settle()'s work. Newer Pythons want it said.
        archive.extractall(tree, **({"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}))


def data_member(content, deb):
    """(name, bytes) of the files' archive in a package, which is an ar archive."""
    if not content.startswith(b"!<arch>\n"):
        raise Failure(f"{deb} is no Debian package")
    at = 8
    while at + 60 <= len(content):
        name = content[at:at + 16].decode("ascii", "replace").strip().rstrip("/")
        size = int(content[at + 48:at + 58])
        if name.startswith("data.tar"):
            return name, content[at + 60:at + 60 + size]
        at += 60 + size + size % 2
    raise Failure(f"{deb} holds no data.tar")


def decompressed(name, content, deb):
    if name.endswith(".xz"):
        return lzma.decompress(content)
    if name.endswith(".zst"):  # Ubuntu's
        if not shutil.which("zstd"):
            raise Failure(f"unpacking {deb} needs dpkg-deb or zstd")
        return subprocess.run(["zstd", "-dc"], input=content, capture_output=True, check=True).stdout
    return content  # tarfile knows gzip by itself
