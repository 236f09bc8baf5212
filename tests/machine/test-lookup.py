# SPDX-License-Identifier: LGPL-2.1-or-later
"""An account database that does not answer, one on the network say: whoever does not ask for something of it waits for nothing."""

import contextlib
import glob
import os
import pwd
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good, wait_for  # noqa: E402
from errand_system import MANAGER, ROOT, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER = "alice"
UID = machine.account(OWNER, "errand-users")
HOME = pwd.getpwnam(OWNER).pw_dir
BUS = f"/run/user/{UID}/bus"
SWITCH = "/etc/nsswitch.conf"

shutil.copy(os.path.join(os.environ["ERRAND_BUILD"], "tests/machine/libnss_stall.so.2"), glob.glob("/usr/lib/*/libc.so.6")[0].replace("libc.so.6", "libnss_stall.so.2"))
machine.write(SWITCH, "passwd: stall files\ngroup: stall files\nhosts: files\n")
system.configure({"operators": ["root"]})  # a name to look up
good("loginctl", "enable-linger", OWNER)
wait_for(lambda: os.path.exists(BUS), "session bus")
good("sh", "-c", f"mkdir -p {HOME}/.config/errand {HOME}/project && cat >{HOME}/.config/errand/errand.json", account=OWNER,
     stdin='{"sandbox": {"requireFullEnforcement": false}, "limits": {"brokersAhead": 0}}')


@contextlib.contextmanager
def no_answer():
    machine.write("/run/nss-stall", "")
    try:
        yield
    finally:
        os.unlink("/run/nss-stall")


def whole_life(t, client, name, **options):
    """Of a session, every step of which is answered."""
    client.create(name, ["/bin/sh", "-c", "echo here; sleep infinity"], interactive=True, **options)
    client.session(name, "Start")
    (terminal,) = client.session(name, "Attach", "a{sv}", {})
    os.close(terminal)
    client.session(name, "Grant", "ss", "example.com", "always")
    client.session(name, "Kill", "i", 28) # SIGWINCH
    wait_for(lambda: client.transcript(name) == "here\r\n", "transcript")
    client.session(name, "Stop")
    t.equal(client.state(name), "stopped", "state")
    client.session(name, "Start")
    client.session(name, "Stop")
    client.session(name, "Collect")


@case("T020: an account database that does not answer keeps no caller of the system's errandd waiting, but who has it read a configuration")
def _(t):
    t.log("journal", system.log)
    owner, root = Client(OWNER, timeout=15), Client(timeout=15)
    with no_answer():
        reading = Client(timeout=40)
        serial = reading.send(ROOT, MANAGER, "Reload")
        whole_life(t, owner, "s1")
        whole_life(t, root, "s2", user="errand-agent")
        whole_life(t, root, "s3", user=str(pwd.getpwnam("errand-agent").pw_uid))
        t.equal(root.fails(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", "demo"), "command": ("as", ["true"]), "user": ("s", OWNER)}),
                "org.errand1.Error.NotPermitted", "error")
        answer = reading.receive()
        while answer.get("reply_serial") != serial:
            answer = reading.receive()
        t.equal(answer.get("error"), "org.errand1.Error.Configuration", "answer to who has the accounts looked up")


@case("T020: the same of a person's own errandd, whose account such a database has")
def _(t):
    t.log("journal", lambda: machine.journal(f"_UID={UID}"))
    t.check(Client(OWNER, path=BUS).get(ROOT, MANAGER, "Ready"), "errandd is not ready")
    with no_answer():
        whole_life(t, Client(OWNER, path=BUS, timeout=15), "u1", project=f"{HOME}/project")
        whole_life(t, Client(OWNER, path=BUS, timeout=15), "u2", project=f"{HOME}/project", user=OWNER)


run_tests()
