from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from backend.servers.environments.site_folders import site_folder_of
from tests.conftest import ROOT

PROGRAM = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from backend.servers.environments.site_folders import own_site_folders, take_on_environment
before, own = list(sys.path), own_site_folders()
take_on_environment(Path({environment!r}))
after = list(sys.path)
take_on_environment(Path({environment!r}))
import inside, beside
print(json.dumps({{
    "same": after == sys.path, "added": [entry for entry in after if entry not in before], "prefix": sys.prefix,
    "in_front": after.index(after[[entry not in before for entry in after].index(True)]) < after.index(str(own[0])),
    "kept": [entry for entry in after if entry in before] == before, "executable": sys.executable,
    "venv": os.environ["VIRTUAL_ENV"], "path": os.environ["PATH"].split(os.pathsep)[0], "hook": hasattr(sys, "hooked"),
}}))
"""


def test_a_process_takes_an_environment_on(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = site_folder_of(environment)
    assert site.is_dir()
    (site / "inside.py").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "beside.py").touch()
    (site / "a.pth").write_text(f"{elsewhere}\nimport sys; sys.hooked = True\n")
    (site / "zz_gym_tui.pth").write_text("import sys; del sys.hooked\n")
    code = PROGRAM.format(root=str(ROOT), environment=str(environment))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "same": True,
        "added": [str(site), str(elsewhere)],
        "in_front": True,
        "kept": True,
        "prefix": str(environment),
        "executable": str(environment / "bin" / "python"),
        "venv": str(environment),
        "path": str(environment / "bin"),
        "hook": True,
    }
