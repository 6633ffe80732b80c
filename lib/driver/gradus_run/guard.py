"""Two processes that look after each other, so that nothing is left behind whichever of them is killed.

    gradus-run        waits, passes signals on, and cleans up if the job is killed
      └─ the job      starts the ranks, shows their output, ends them; the kernel ends it with its parent
           ├─ rank 0  each in a process group of its own; the kernel kills it with its parent
           └─ rank 1

Each of the first two is a "subreaper": whatever a rank has started and left becomes its child, and so is found at the end.
"""
import ctypes
import os
import signal
import time
import traceback

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # the job is to end
PASSED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCONT)  # and these are for the ranks
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)


def end_with(parent, number):
    """This process gets signal `number` when `parent`, which started it, ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it had ended before
        os.kill(os.getpid(), number)


def adopt_orphans():
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)


def children():
    """The processes whose parent this one is, zombies too."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                parent = stat.read().rpartition(b")")[2].split()[1]
        except (OSError, IndexError):  # it has ended meanwhile
            continue
        if int(parent) == os.getpid():
            found.append(int(name))
    return found


def reap():
    """[(process, wait status)] of children that have ended."""
    ended = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process == 0:
            return ended
        ended.append((process, status))


def kill_descendants(patience=5.0):
    """Kills children, then those that become children by it, until none are left. A process that the kernel holds fast (in
    a system call that cannot be interrupted) is not waited for longer than `patience` seconds."""
    limit = time.monotonic() + patience
    while (left := children()) and time.monotonic() < limit:
        for process in left:
            os.kill(process, signal.SIGKILL)
        reap()
        time.sleep(0.002)


def heard():
    """Those signals that are not ignored: nohup, and a shell's &, ask for that."""
    return {number for number in ENDING + PASSED if signal.getsignal(number) != signal.SIG_IGN}


def guarded(work):
    """Runs work(its parent, the signals to hear) in a child and returns its exit status. The child is in a process group of its
    own, so that what kills all of this one's, as `timeout -s KILL` does, leaves it to clean up."""
    numbers = heard()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers | {signal.SIGCHLD})
    adopt_orphans()
    parent = os.getpid()
    job = os.fork()
    if job == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            adopt_orphans()
            status = work(parent, numbers)
        except BaseException:  # nobody above would print it
            traceback.print_exc()
        finally:
            os._exit(status)
    return wait_for(job, numbers)


def wait_for(job, numbers):
    asked = 0
    while True:
        number = signal.sigwait(numbers | {signal.SIGCHLD})
        if number == signal.SIGCHLD:
            for process, status in reap():
                if process == job:
                    kill_descendants()
                    return exit_status(status)
            continue
        asked += number in ENDING
        os.kill(job, signal.SIGKILL if asked > 1 and number in ENDING else number)
        if number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)


def exit_status(status):
    """A shell's number for a wait status: 128 + n for signal n."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
