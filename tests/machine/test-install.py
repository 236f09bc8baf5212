# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `meson install` puts on a machine, on that machine: accounts, directories, units, the bus policy."""

import glob
import grp
import os
import pwd
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
from errand_machine import good, run  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

SYSTEM_UNITS = "/usr/lib/systemd/system"
USER_UNITS = "/usr/lib/systemd/user"
EXPOSURE_MAX = 15  # tenths, as systemd-analyze counts


def ours(directory):
    return sorted(glob.glob(f"{directory}/errand*"))


@case("the accounts are there, and errand-agent is in no other group")
def _(t):
    errand, agent = pwd.getpwnam("errand"), pwd.getpwnam("errand-agent")
    t.check(0 < errand.pw_uid < 1000 and 0 < agent.pw_uid < 1000 and errand.pw_uid != agent.pw_uid, "not two system accounts")
    t.equal((errand.pw_shell, agent.pw_shell), ("/usr/sbin/nologin", "/usr/sbin/nologin"), "shells")
    t.equal([g.gr_name for g in grp.getgrall() if "errand-agent" in g.gr_mem], [], "groups of errand-agent")
    t.equal([g.gr_name for g in grp.getgrall() if "errand" in g.gr_mem], ["errand-agent"], "groups of errand")
    t.equal(grp.getgrnam("errand-users").gr_mem, [], "members of errand-users")
    t.equal(good("systemd-sysusers", "--dry-run", "/usr/lib/sysusers.d/errand.conf"), "", "what is left to make")


@case("the directories have their accounts and modes, and making them again finds nothing unsafe")
def _(t):
    def check(row):
        path, owner, group, mode = row
        st = os.stat(path)
        t.equal((pwd.getpwuid(st.st_uid).pw_name, grp.getgrgid(st.st_gid).gr_name, oct(stat.S_IMODE(st.st_mode))), (owner, group, mode), path)

    done = run("systemd-tmpfiles", "--create", "/usr/lib/tmpfiles.d/errand.conf")
    t.equal((done.status, done.err), (0, ""), "making them again")
    t.each([("/run/errand", "root", "root", "0o755"), ("/run/errand/broker", "root", "errand", "0o750"),
            ("/run/errand/shim", "errand-agent", "errand", "0o2750"), ("/var/lib/errand", "errand", "errand-agent", "0o2710"),
            ("/srv/errand", "errand-agent", "errand-agent", "0o2775"), ("/etc/errand", "root", "root", "0o755"),
            ("/etc/errand/sessions.d", "root", "root", "0o755"), ("/etc/errand/credentials", "root", "root", "0o700"), ("/var/lib/errand-agent", "root", "root", "0o755")], check)


@case("where the directory of brokers' control sockets is not there, systemd makes one that nobody else enters")
def _(t):
    os.rename("/run/errand/broker", "/run/errand/kept")
    good("systemctl", "start", "errand-broker-control@x1.socket")
    st = os.stat("/run/errand/broker")
    good("systemctl", "stop", "errand-broker-control@x1.socket")
    os.rmdir("/run/errand/broker")
    os.rename("/run/errand/kept", "/run/errand/broker")
    t.equal((st.st_uid, st.st_gid, oct(stat.S_IMODE(st.st_mode))), (0, 0, "0o750"), "its owner and mode")


@case("every unit is what systemd understands")
def _(t):
    # An instance stands for its template; a broker's two sockets and its service name each other.
    names = [os.path.basename(p).replace("@.", "@x1.") for p in ours(SYSTEM_UNITS)]
    t.equal(len(names), 8, "number of units")
    done = run("systemd-analyze", "verify", "--man=no", *names)
    t.equal((done.status, done.out + done.err), (0, ""), "of the system")
    names = [os.path.basename(p).replace("@.", "@x1.") for p in ours(USER_UNITS)]
    t.equal(len(names), 8, "number of units")
    done = run("systemd-analyze", "verify", "--user", "--man=no", *names, env={**os.environ, "XDG_RUNTIME_DIR": t.directory})
    t.equal((done.status, done.out + done.err), (0, ""), "of an account")


@case("what is hardened is exposed to 1.5 at most, and a unit that is not hardened is told from them")
def _(t):
    def exposure(path):
        return run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", path)

    for name in ("errandd.service", "errand-broker@.service", "errand-session@.service"):
        done = exposure(f"{SYSTEM_UNITS}/{name}")
        t.note([line for line in done.out.splitlines() if "exposure level" in line][0])
        t.equal(done.status, 0, f"{name}: {done.out}")
    t.check(exposure(f"{SYSTEM_UNITS}/errand-launch.service").status != 0, "the launcher, which must not be restricted, passes: nothing was measured")


@case("a broker's system calls are on a list: none that makes namespaces, reads other processes or goes past the filter")
def _(t):
    allowed = set(good("systemctl", "show", "--value", "-p", "SystemCallFilter", "errand-broker@x1.service").split())
    t.check({"read", "splice", "openat", "clone3"} <= allowed, f"not an allow list: {sorted(allowed)}")
    t.equal(allowed & {"fork", "io_uring_setup", "keyctl", "kill", "mount", "pidfd_getfd", "pidfd_open", "process_vm_readv", "ptrace", "setns", "setuid", "unshare", "userfaultfd"},
            set(), "what it may call")


@case("the manager of errand-agent runs from boot, starts nothing by itself, and its units are not its own to change")
def _(t):
    uid = pwd.getpwnam("errand-agent").pw_uid
    machine.wait_for(lambda: os.path.exists(f"/run/user/{uid}/systemd/private"), "service manager of errand-agent")
    manager = ("systemctl", "--user", "-M", "errand-agent@.host", "--no-legend", "--plain")
    machine.wait_for(lambda: os.path.exists(f"/run/user/{uid}/bus"), "bus of errand-agent")
    t.equal(good(*manager, "is-active", "rescue.target"), "active\n", "its only target")

    def active():
        # It says that it is ready before it has started what its targets want, the bus among them, by which it is asked.
        machine.wait_for(lambda: run(*manager, "is-system-running", "--wait").out in ("running\n", "degraded\n"), "manager that has started all")
        units = [line.split()[0] for line in good(*manager, "list-units", "--state=active").splitlines()]
        return sorted(u for u in units if u.endswith((".service", ".socket", ".timer", ".path")))

    t.equal(active(), ["dbus.service", "dbus.socket"], "active units")
    t.equal(machine.show("errand.slice", "FragmentPath", *manager[1:4]), "/var/lib/errand-agent/.config/systemd/user/errand.slice", "its slice")

    # What others enable for every account; without the masks it would be started.
    for kind in ("service", "socket", "timer", "path"):
        target = "default" if kind == "service" else f"{kind}s"
        section = {"service": "[Service]\nExecStart=/bin/sleep infinity\n", "socket": "[Socket]\nListenStream=%t/planted\n",
                   "timer": "[Timer]\nOnActiveSec=1h\n", "path": "[Path]\nPathExists=/never\n"}[kind]
        machine.write(f"/etc/systemd/user/planted.{kind}", section)
        os.makedirs(f"/etc/systemd/user/{target}.target.wants", exist_ok=True)
        os.symlink(f"../planted.{kind}", f"/etc/systemd/user/{target}.target.wants/planted.{kind}")
    good("systemctl", "restart", f"user@{uid}.service")
    t.equal(active(), ["dbus.service", "dbus.socket"], "active units with some that are enabled for everybody")
    os.makedirs("/var/lib/errand-agent/.config/away")
    for target in ("default", "sockets", "timers", "paths"):
        os.rename(f"/var/lib/errand-agent/.config/systemd/user/{target}.target", f"/var/lib/errand-agent/.config/away/{target}.target")
    good("systemctl", "restart", f"user@{uid}.service")
    t.equal(active(), ["dbus.service", "dbus.socket"] + [f"planted.{k}" for k in ("path", "service", "socket", "timer")], "active units without the masks")
    for target in ("default", "sockets", "timers", "paths"):
        os.rename(f"/var/lib/errand-agent/.config/away/{target}.target", f"/var/lib/errand-agent/.config/systemd/user/{target}.target")
    for place in (".config/systemd/user/x.service", ".bashrc", ".config/systemd/user/default.target.wants/x"):
        done = run("touch", f"/var/lib/errand-agent/{place}", account="errand-agent")
        t.check(done.status != 0, f"it could make {place}")


def own(account, name):
    """Whether the bus gives account the name."""
    return machine.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName", "su", name, "4", account=account)


@case("C196: the bus gives the name to account errand alone")
def _(t):
    machine.account("mallory")
    for account in ("mallory", "errand-agent", "root"):
        done = own(account, "org.errand1")
        t.contains(done.err, "Access denied" if "Access denied" in done.err else "not allowed to own", f"as {account}")
    t.equal(own("errand", "org.errand1").out, "u 1\n", "as errand")
    t.check(own("errand", "org.errand2").status != 0, "account errand may own other names")
    t.check(own("errand", "org.freedesktop.PolicyKit2").status != 0, "account errand may own other names")


@case("C196: the bus policy opens nothing but calls of errandd, and errandd's account a ping and what the bus counts")
def _(t):
    import xml.etree.ElementTree as tree
    rules = [(policy.attrib, rule.tag, rule.attrib) for policy in tree.parse("/usr/share/dbus-1/system.d/org.errand1.conf").getroot() for rule in policy]
    t.equal(rules, [({"context": "default"}, "deny", {"own": "org.errand1"}),
                    ({"context": "default"}, "allow", {"send_destination": "org.errand1", "send_type": "method_call"}),
                    ({"user": "errand"}, "allow", {"own": "org.errand1"}),
                    # Whether a subscriber takes its signals: it does nothing, and tells no more than that somebody is there.
                    ({"user": "errand"}, "allow", {"send_interface": "org.freedesktop.DBus.Peer", "send_member": "Ping", "send_type": "method_call"}),
                    # How much the bus holds for a client that takes nothing: numbers alone.
                    ({"user": "errand"}, "allow", {"send_destination": "org.freedesktop.DBus", "send_interface": "org.freedesktop.DBus.Debug.Stats",
                                                   "send_member": "GetConnectionStats", "send_type": "method_call"})],
            "rules")


def credentials_unit(directory):
    """errandd.service with ls in place of errandd; → its result and what it saw."""
    drop_in = "errandd.service.d/test.conf"
    machine.unit(drop_in, "[Service]\nType=oneshot\nRestart=no\nExecStart=\n"
                 f"ExecStart=/bin/bash -c 'cd \"$CREDENTIALS_DIRECTORY\" && stat -c \"%%n %%a %%U\" * && cat *'\nStandardOutput=truncate:/run/seen\nLoadCredential=\nLoadCredential=keys:{directory}\n")
    run("systemctl", "start", "errandd.service")
    result = machine.show("errandd.service", "Result")
    machine.no_unit(drop_in)
    with open("/run/seen", encoding="utf-8") as f:
        return result, f.read()


@case("errandd.service starts whether or not there is a directory of credentials, and sees each of its files")
def _(t):
    directory = t.path("credentials")
    result, seen = credentials_unit(directory)
    t.equal(result, "success", f"without the directory: {seen}")
    t.contains(seen, "none")
    os.mkdir(directory, 0o700)
    result, seen = credentials_unit(directory)
    t.equal(result, "success", f"with an empty one: {seen}")
    machine.write(f"{directory}/anthropic", "a-key-of-the-test\n", 0o600)
    result, seen = credentials_unit(directory)
    t.equal(result, "success", f"with a file: {seen}")
    t.contains(seen, "keys_anthropic")
    t.contains(seen, "a-key-of-the-test")


run_tests()
