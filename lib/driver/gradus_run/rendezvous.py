"""The port at which rank 0 is met."""
import contextlib
import errno
import socket
import sys

from .refused import Refused


def bound(port):
    """The port that could be bound, on all addresses as rank 0 will; 0 takes any that is free. OSError where it is not."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with contextlib.closing(socket.socket(family)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last job's closed connections do not count
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        probe.bind(("", port))
        probe.listen(1)
        return probe.getsockname()[1]


def port_for_one_host(wanted):
    """`wanted` if it is free; else, and without one, a port that is. All ranks are ours, so that they hear of the change."""
    if not wanted:
        return bound(0)
    try:
        return bound(wanted)
    except OSError as error:
        free = bound(0)
        print(f"gradus-run: port {wanted} cannot be used ({error.strerror}); taking {free}", file=sys.stderr, flush=True)
        return free


def require_free(port):
    """Host 0 of several cannot take another port than the others were told."""
    try:
        bound(port)
    except OSError as error:
        why = "is used by another program" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise Refused(f"port {port} of this host {why}; give all hosts another one with --master-port", 2) from None
