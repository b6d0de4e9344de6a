"""The process that stands above all commands of one local sandbox, so that closing the sandbox ends every one of them.

Run as a script of its own with the standard library only. It adopts whatever its commands leave behind (Linux's child subreaper), also what
has left their process groups. When its socket closes, because the sandbox was closed or the server is gone, it kills all of that and deletes the folder.

Messages are JSON, one per packet. In: `{"start": n}` with three descriptors (a file with `{"argv", "cwd", "env"}`, stdout, stderr) or four (stdin;
with `"terminal": true` in the file it becomes the command's controlling terminal), and `{"kill": n, "signal": its number}`. Out: `{"ended": n, "code": exit code, negative for a signal}`, or `{"failed": n, "error": text}`.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import termios

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PACKET = 1 << 12
_MOST_OF_AN_ERROR = 500
_PARENT_CHECK_SECONDS = 1.0
_libc = ctypes.CDLL(None, use_errno=True)


class Keeper:
    """Starts commands as process groups, reports their ends, and leaves nothing behind."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.commands: dict[int, int] = {}
        """Process id -> number of the commands that run."""

    def run(self) -> None:
        """Serve until the other side is gone."""
        parent = os.getppid()
        woken, wakes = os.pipe()
        for end in (woken, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.DefaultSelector()
        selector.register(self.control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while os.getppid() == parent:
            for key, _ in selector.select(_PARENT_CHECK_SECONDS):
                if key.fileobj is self.control:
                    if not self._serve_request():
                        return
                else:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, _PACKET)
                    self._reap()

    def _serve_request(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, _PACKET, 4)
        except ConnectionResetError:  # the server died with something unread
            return False
        if not data:
            return False
        message = json.loads(data)
        if "start" in message:
            self._start(message["start"], *descriptors)
        else:
            self._kill(message["kill"], message.get("signal", signal.SIGKILL))
        return True

    def _start(self, number: int, request: int, stdout: int, stderr: int, stdin: int = subprocess.DEVNULL) -> None:
        try:
            with open(request, "rb") as file:
                wanted = json.load(file)
            process = subprocess.Popen(
                wanted["argv"],
                cwd=wanted["cwd"],
                env=wanted["env"],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=_begin_in_terminal if wanted.get("terminal") else _begin,  # safe here: this process has one thread
            )
            self.commands[process.pid] = number
            process.returncode = 0  # it is reaped below, not by its object
        except Exception as error:  # whatever the request holds, it must not end the other commands
            self._say({"failed": number, "error": str(error)[:_MOST_OF_AN_ERROR]})
        finally:
            for descriptor in (stdout, stderr, stdin):
                if descriptor >= 0:
                    os.close(descriptor)

    def _kill(self, number: int, by: int) -> None:
        for pid, other in self.commands.items():
            if other == number:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, by)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                number = self.commands.pop(pid, None)
                if number is not None:
                    self._say({"ended": number, "code": os.waitstatus_to_exitcode(status)})

    def _say(self, message: dict[str, object]) -> None:
        with contextlib.suppress(OSError):
            self.control.send(json.dumps(message).encode())

    def end_all(self) -> None:
        """Kill every process below this one, those too that come to it while it does so."""
        with contextlib.suppress(ChildProcessError):
            while [pid for pid in _children(os.getpid()) if _killed(pid)]:
                os.waitpid(-1, 0)


def _killed(pid: int) -> bool:
    """Kill a process; False for one that has become another user's (`sudo`), which nobody here can end."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _children(parent: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                    found.append(int(entry))
    return found


def _begin() -> None:
    """In a command's process, before it becomes the command."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # that this process ignores it would be inherited


def _begin_in_terminal() -> None:
    _begin()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def delete_tree(root: str) -> None:
    """Delete a folder, also where commands took away the permission to."""
    import shutil  # not needed until here, and a third of this process' start

    shutil.rmtree(root, ignore_errors=True)
    if os.path.exists(root):
        for folder, _, _ in os.walk(root):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    """Serve on the socket whose descriptor is the first argument; the second is the sandbox's folder."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keeper = Keeper(socket.socket(fileno=int(sys.argv[1])))
    try:
        keeper.run()
    finally:
        keeper.end_all()
        delete_tree(sys.argv[2])


if __name__ == "__main__":
    main()
