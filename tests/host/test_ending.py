"""A server that was asked to end is ended; who merely called one is not."""

from __future__ import annotations

import subprocess
import sys

HANG = 60


def ran(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", f"from gripfast.host.program.ending import end_for_sure, ending\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


def test_a_server_that_does_not_stop_is_ended() -> None:
    stuck = ran("import time\nwith end_for_sure(0.1):\n    ending()\n    time.sleep(600)")
    assert stuck.returncode == 1
    assert "did not stop in time" in stuck.stderr
    assert "most recent call first" in stuck.stderr


def test_a_thread_that_never_stops_does_not_keep_our_own_process() -> None:
    code = "import threading, time\nfrom gripfast.host.program.ending import this_process_is_ours\n"
    code += "this_process_is_ours()\nwith end_for_sure(0.1):\n"
    code += "    threading.Thread(target=time.sleep, args=(600,)).start()\n    ending()"
    assert ran(code).returncode == 1


def test_a_program_that_called_a_server_lives_on() -> None:
    code = "import time\nwith end_for_sure(0.1):\n    ending()\nending()\ntime.sleep(0.5)\nprint('alive')"
    done = ran(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")
