"""A `docker` program that notes how it is called and plays the daemon with folders of this machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.servers.sandbox import AsyncSandbox, SandboxSpec

FAKE = """#!{python} -IS
import json, os, shutil, subprocess, sys, time
home = {home!r}
words = sys.argv[1:]
with open(home + "/calls", "a") as file:
    file.write(json.dumps({{"argv": words, "env": dict(os.environ)}}) + "\\n")
def fail(text, code=1):
    sys.stderr.write(text + "\\n")
    sys.exit(code)
def told(name):
    return os.path.exists(home + "/" + name)
def value(flag):
    return words[words.index(flag) + 1]
if words[0] == "run":
    if told("no-daemon"):
        fail("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", 125)
    os.makedirs(home + "/" + value("--name") + "/work", exist_ok=True)
    if told("slow"):
        time.sleep(60)
    print("0123456789ab")
elif words[0] == "exec":
    at = next(i for i, word in enumerate(words) if word.startswith("gym-sandbox-"))
    root = home + "/" + words[at]
    if not os.path.isdir(root):
        fail("Error response from daemon: No such container: " + words[at])
    command = words[at + 1:]
    if command[-1] == "command -v bash" and told("no-bash"):
        sys.exit(127)
    if told("not-ready") and "docker-sandbox-ready" in command[-1]:
        left = int(open(home + "/not-ready").read() or 10**6)
        if left:
            open(home + "/not-ready", "w").write(str(left - 1))
            fail("still starting", 7)
    if told("no-shell") and command[0] == "sh":
        fail("OCI runtime exec failed: exec: \\"sh\\": no such file", 126)
    if command[0] == "mkdir":
        command[-1] = root + command[-1]
    where = root + (value("--workdir") if "--workdir" in words[:at] else "/work")
    shown = subprocess.run(command, cwd=where, env=dict(os.environ, HOME="/root"), capture_output=True)
    sys.stdout.buffer.write(shown.stdout.replace(root.encode(), b""))
    sys.stderr.buffer.write(shown.stderr)
    sys.exit(shown.returncode)
elif words[0] == "cp":
    def local(path):
        name, colon, rest = path.partition(":")
        return home + "/" + name + rest if colon else path
    source, target = (local(word) for word in words[-2:])
    if not os.path.exists(source):
        fail("Error response from daemon: Could not find the file")
    (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)
elif words[0] == "inspect":
    if not os.path.isdir(home + "/" + words[-1]):
        fail("Error: No such object: " + words[-1])
    print("running")
elif words[0] == "port":
    if words[-1] != "8000/tcp":
        fail("Error: No public port " + words[-1])
    print("127.0.0.1:49153")
elif words[0] == "rm":
    if told("stuck"):
        fail("Error response from daemon: driver failed to remove")
    if not os.path.isdir(home + "/" + words[-1]):
        fail("Error response from daemon: No such container: " + words[-1])
    shutil.rmtree(home + "/" + words[-1])
"""


@dataclass
class Daemon:
    """The fake program, and what it was asked."""

    home: Path

    @property
    def binary(self) -> str:
        return str(self.home / "docker")

    def calls(self, verb: str) -> list[dict[str, Any]]:
        lines = (self.home / "calls").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call["argv"][0] == verb]

    def run_words(self) -> list[str]:
        words: list[str] = self.calls("run")[-1]["argv"]
        return words

    def box(self, spec: SandboxSpec, **settings: Any) -> AsyncSandbox:
        return AsyncSandbox({"docker": {"binary": self.binary, **settings}}, spec)

    def tell(self, what: str) -> None:
        (self.home / what).touch()
