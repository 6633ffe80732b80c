"""Registers and spills of kernels: what the compiler launcher keeps (lib/cmake), and what is made of it (lib/driver)."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from made import ROOT
from driver import registers

LAUNCHER = ROOT / "lib" / "cmake" / "keep_ptxas_output.py"
ADD = "_ZN6gradus7kernels5entryINS0_3AddIfEEEEvT_l"
PTXAS = f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{ADD}' for 'sm_80'
ptxas info    : Function properties for {ADD}
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 4096 bytes smem, 384 bytes cmem[0]
ptxas info    : Compile time = 12.614 ms
ptxas info    : Compiling entry function '{ADD}' for 'sm_90'
ptxas info    : Function properties for {ADD}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers
ptxas info    : Function properties for _Z6helperv
    8 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads
"""
# Says what nvcc would, and writes its object.
NVCC = """#!/bin/sh
cat "$(dirname "$0")/says" >&2
while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2"; shift; done
exit $(cat "$(dirname "$0")/status")
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.nvcc = self.folder / "nvcc"
        self.nvcc.write_text(NVCC)
        self.nvcc.chmod(0o755)

    def compile(self, says, status=0, name="x.cu.o"):
        (self.folder / "says").write_text(says)
        (self.folder / "status").write_text(str(status))
        return subprocess.run([sys.executable, LAUNCHER, self.nvcc, "-c", "x.cu", "-o", self.folder / name], capture_output=True,
                              text=True, check=False)

    def commands(self, *names):
        rows = [{"directory": str(self.folder), "command": f"{self.nvcc} -c x.cu -o {name}", "file": "x.cu"} for name in names]
        rows.append({"directory": str(self.folder), "command": "c++ -c y.cpp -o y.cpp.o", "file": "y.cpp"})
        (self.folder / "compile_commands.json").write_text(json.dumps(rows))

    def check(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = registers.main([str(self.folder), *arguments])
        return status, out.getvalue()


class Launcher(Case):
    def test_keeps_ptxas_words_and_passes_on_the_rest(self):
        warning = "x.cu(3): warning #177-D: variable was declared but never referenced\n    int x;\n    ^\n"
        result = self.compile(PTXAS + warning)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", warning))
        self.assertEqual((self.folder / "x.cu.o.ptxas").read_text(), PTXAS)

    def test_a_compilation_that_fails_leaves_no_record(self):
        self.compile(PTXAS)
        result = self.compile("x.cu(1): error: made up\n", status=2)
        self.assertEqual((result.returncode, result.stderr), (2, "x.cu(1): error: made up\n"))
        self.assertFalse((self.folder / "x.cu.o.ptxas").exists())

    def test_killed_by_a_signal(self):
        self.nvcc.write_text("#!/bin/sh\nkill -9 $$\n")
        self.assertEqual(self.compile("").returncode, 128 + 9)


class Registers(Case):
    def test_a_hot_kernel_that_spills_fails(self):
        self.compile(PTXAS)
        self.commands("x.cu.o", "not_built.cu.o")
        status, said = self.check("--json", str(self.folder / "registers.json"))
        self.assertEqual(status, 1)
        self.assertIn("2 kernels for sm_80, sm_90; most registers: 255, Add<float>; with spills: 2, hot ones among them: 2", said)
        self.assertIn("  Add<float> (sm_80) spills 20 bytes, with 255 registers\n", said)
        self.assertIn("  helper() (sm_90) spills 4 bytes", said)
        record = json.loads((self.folder / "registers.json").read_text())
        self.assertEqual(record["kernels"][0], {"symbol": ADD, "arch": "sm_80", "registers": 255, "shared_bytes": 4096, "stack_bytes": 16,
                                                "spill_bytes": 20, "name": "Add<float>"})

    def test_a_kernel_that_may_spill(self):
        self.compile(PTXAS)
        self.commands("x.cu.o")
        with mock.patch.object(registers, "MAY_SPILL", {r"^Add<float> \(sm_80\)": "made up", r"^helper": "made up"}):
            status, said = self.check()
        self.assertEqual((status, "with spills: 2, hot ones among them: 0" in said), (0, True))

    def test_no_spill(self):
        self.compile(PTXAS[PTXAS.index("ptxas info    : Compiling entry function", 200):PTXAS.rindex("ptxas info    : Function")])
        self.commands("x.cu.o")
        self.assertEqual(self.check("--list"), (0, "sm_90     24 registers      0 B shared     0 B spilled  Add<float>\n"
                                                   "1 kernels for sm_90; most registers: 24, Add<float>; with spills: 0, hot ones among them: 0\n"))

    def test_an_object_without_record_and_ptxas_advice(self):
        self.compile("ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized\n")
        (self.folder / "old.cu.o").touch()
        self.commands("x.cu.o", "old.cu.o")
        status, said = self.check()
        self.assertEqual(status, 1)
        self.assertIn("no CUDA kernel was compiled\n  x.cu.o: (C7510) Potential Performance Loss: wgmma", said)
        self.assertIn("old.cu.o was compiled without a record of its kernels", said)

    def test_not_configured(self):
        with self.assertRaisesRegex(registers.Failure, "configure the build first"):
            registers.main([str(self.folder)])


if __name__ == "__main__":
    unittest.main()
