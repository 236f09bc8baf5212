#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The modes in which a run is connected: Landlock's TCP ports in the host's network, and a namespace that the real pasta connects. The
host and an internet are namespaces of the test's own. Each refusal stands beside what the same probe gets without a sandbox."""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys

import network
from bailey import NOT_RUN, check, main
from network import PASTA, PROBE, RULES, TUN, bound, hidden, pasta_as, rules, servers

network.errand_world.enter()
net = network.errand_world.world()
HOST, INTERNET = net.host, net.internet
HOST4, FAR = network.errand_world.HOST4, network.errand_world.PUBLIC4[0]
FAR6 = network.errand_world.PUBLIC6[0]
has_tun, has_ipv6 = network.usable_tun(), os.path.exists("/proc/net/if_inet6")
network.settle()
NO_TUN = "only root can give an ordinary account /dev/net/tun"

WARNING = ("bailey: warning: outbound access is restricted by TCP port only;\n"
           "UDP, QUIC, and DNS are not restricted\n")
P443 = '[network]\negress_allow = ["443"]\n'
BIND = "[network]\nbind_ports = [8080]\n"
ANY = '[network]\negress = "allow"\nbind_ports = [8080]\n'
PATIENT = ANY + '[env]\nset = { RES_OPTIONS = "timeout:30 attempts:5" }\n'  # a name that waits for an answer does so for longer than a run may take
SILENT = ("wait=2",)
BROKER = ("--egress-proxy", "169.254.169.1:8443")
NFT = "/usr/sbin/nft"
LIBRARY = subprocess.run(["/bin/sh", "-c", "ls /usr/lib/*/libnftables.so.1"], capture_output=True, text=True, check=True).stdout.strip()


def probe(w, policy, *operations, options=(), wait=(), **more):
    """The answers from inside, by operation, and the run."""
    config = ["--config", w.policy(policy)] if policy else []
    r = w.call("run", *config, *options, "/usr/bin/python3", "-c", PROBE, *wait, *operations, **more)
    check(len(r.out.splitlines()) == len(operations), r)
    return dict(zip(operations, r.out.splitlines())), r


def outside(*operations, wait=()):
    out = subprocess.run(["/usr/bin/python3", "-c", PROBE, *wait, *operations], capture_output=True, text=True, check=True).stdout
    return dict(zip(operations, out.splitlines()))


def refused(got, expected):
    """Each answers as given, and was answered outside."""
    bare = outside(*expected)
    for operation, answer in expected.items():
        wanted = answer if isinstance(answer, tuple) else (answer,)
        check(got[operation] in wanted, f"{operation} is {got[operation]} inside, not {answer}")
        check(bare[operation] not in wanted, f"{operation} is {bare[operation]} outside, too: this shows nothing")


def needs_tun(function):
    return lambda w: function(w) if has_tun else NO_TUN


# ---- landlock only ----

def ports(w):
    with servers((INTERNET, FAR, 443, "far"), (INTERNET, FAR, 444, "other"), (HOST, "127.0.0.1", 443, "near"), (HOST, "127.0.0.1", 445, "no")):
        got, r = probe(w, P443, f"tcp={FAR},443", f"tcp={FAR},444", "tcp=127.0.0.1,443", "tcp=127.0.0.1,445", f"udp={FAR},444",
                       "udp=127.0.0.1,445", f"ping={FAR}", "tcp=9.9.9.10,443", f"fastopen={FAR},444", "bind=8080")
        check(got[f"tcp={FAR},443"] == "far" and got["tcp=127.0.0.1,443"] == "near", got)
        check(got[f"udp={FAR},444"] == "other" and got["udp=127.0.0.1,445"] == "no", got)
        check(got["tcp=9.9.9.10,443"] == "ECONNREFUSED", got)  # another host at that port: it was asked
        refused(got, {f"tcp={FAR},444": "EACCES", "tcp=127.0.0.1,445": "EACCES", f"fastopen={FAR},444": "ENOTSUP", "bind=8080": "EACCES"})
    check(r.err.startswith(WARNING), r)
    check(", seccomp, TCP ports\n" in r.err and "not enforced" not in r.err, r)


def interfaces(w):
    r = w.run(P443, "ip -o addr; cat /proc/net/route; ls /sys/class/net; env")
    check(HOST4 in r.out and "up0" in r.out and "BAILEY_SANDBOX_NET=ports\n" in r.out, r)
    r = w.run(P443, "cat /etc/resolv.conf")
    check("nameserver 127.0.0.1\n" in r.out, r)


def listening(w):
    for policy in (BIND, ANY):
        got, r = probe(w, policy, "bind=8080", "bind=8081", "bind=0")
        check(got["bind=8080"] == "ok", r)
        refused(got, {"bind=8081": "EACCES", "bind=0": "EACCES"})
        check(r.err.startswith(WARNING), r)
    script = "import socket; s = socket.create_server(('0.0.0.0', 8080)); print('up', flush=True); c, _ = s.accept(); c.sendall(b'in')"
    child = start(w, ["--config", w.policy(BIND), "--quiet"], ["/usr/bin/python3", "-c", script])
    check(child.stdout.readline() == "up\n", child)
    with INTERNET.socket() as s:
        s.settimeout(5)
        s.connect((HOST4, 8080))
        check(s.recv(10) == b"in", "from outside")
    check(child.wait() == 0, child)


def any_port(w):
    with servers((INTERNET, FAR, 443, "far"), (INTERNET, FAR, 444, "other")):
        got, r = probe(w, ANY, f"tcp={FAR},443", f"tcp={FAR},444")
        check(set(got.values()) == {"far", "other"} and ", TCP ports to listen on\n" in r.err, r)
        got, r = probe(w, BIND, f"tcp={FAR},443")
        refused(got, {f"tcp={FAR},443": "EACCES"})


def scoped(w):
    name = f"bailey-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        got, _ = probe(w, P443, f"abstract={name}")
        refused(got, {f"abstract={name}": "EPERM"})
    for options in ([], ["--config", w.policy(P443)]):
        r = w.call("run", *options, "/usr/bin/python3", "-c", PROBE, f"signal={os.getpid()}", lacking="clone3:EPERM")
        check(r.out == "EPERM\n", r)  # the process is in sight there


def without_rules(w):
    lacking = "landlock_create_ruleset:ENOSYS"
    with servers((INTERNET, FAR, 444, "other")):
        got, r = probe(w, P443, f"tcp={FAR},444", lacking=lacking)
        check(got == {f"tcp={FAR},444": "other"}, r)
        check("not enforced: landlock-network: Landlock is older than ABI 4: TCP ports are not restricted\n" in r.err, r)
        check(", seccomp\n" in r.err and r.err.startswith(WARNING), r)
        r = w.run(P443, "true", "--strict", "--accept-gap", "landlock", lacking=lacking)
        check(r.status == NOT_RUN and "landlock-network" in r.err, r)
        got, r = probe(w, BIND, f"tcp={FAR},444", "bind=8080", lacking=lacking)
        refused(got, {f"tcp={FAR},444": "ENETUNREACH"})
        check("egress denied" in r.err, r)


def older_landlock(w):
    """As a kernel that has Landlock and no rules for ports: they are told to be open, and are."""
    abi = os.path.join(os.path.dirname(sys.argv[2]), "escape-abi")
    shutil.copy(abi, w.path("escape-abi"))
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    with servers((INTERNET, FAR, 444, "other")):
        for version, expected in (("3", "other"), ("4", "EACCES")):
            r = subprocess.run([w.path("escape-abi"), version, w.bailey, "run", "--config", w.policy(P443), "/usr/bin/python3", "-c", PROBE, f"tcp={FAR},444"],
                               cwd=w.work, env=w.environment, capture_output=True, text=True, timeout=50, **account)
            check(r.stdout == expected + "\n" and ("not enforced: landlock-network: " in r.stderr) == (version == "3"), r)
            check((", seccomp, TCP ports\n" in r.stderr) == (version == "4"), r)


def without_namespaces(w):
    with servers((INTERNET, FAR, 443, "far"), (INTERNET, FAR, 444, "other")):
        got, r = probe(w, P443, f"tcp={FAR},443", f"tcp={FAR},444", lacking="clone3:EPERM")
        check(got[f"tcp={FAR},443"] == "far", r)
        refused(got, {f"tcp={FAR},444": "EACCES"})
        check("enforced: landlock ABI" in r.err and "TCP ports\n" in r.err and "not enforced: namespaces" in r.err, r)


# ---- a private network ----

def private(w):
    look = ("ip -o addr; ip -o link; ip neigh; ip route; ip -6 route; cat /proc/net/dev /proc/net/route /proc/net/arp /proc/net/if_inet6 "
            "/proc/net/ipv6_route; ls /sys/class/net; cat /sys/class/net/*/address; cat /proc/net/fib_trie")
    for policy in (P443, None):
        r = w.run(policy, look, "--proxy-net")
        check("inet 10.0.2.15/24 " in r.out and "02:62:61:69:6c:79" in r.out, r)
        seen = r.out.lower()
        for word in hidden():
            check(word not in seen and word.replace(":", "") not in seen, (word, r))
        check((f"inet6 fd62:6169:6c65:79::f/64 " in r.out) == (has_ipv6 and policy is not None), r)
        check(", private address\n" in r.err and (WARNING in r.err) == (policy is not None), r)
    r = w.call("run", "--proxy-net", "/usr/bin/ip", "-o", "addr", "show", "scope", "global")
    check(r.status == 0 and "10.0.2.15" in r.out, r)


def no_ipv6(w):
    if not has_ipv6:
        return "a kernel without IPv6 has none to take away"
    subprocess.run(["ip", "-6", "route", "del", "default"], check=True)
    try:
        r = w.run(P443, "ip -o -6 addr; ip -6 route", "--proxy-net")
        check([line.split()[1] for line in r.out.splitlines()] == ["lo"], r)
    finally:
        subprocess.run(["ip", "-6", "route", "add", "::/0", "via", FAR6], check=True)


def carried(w):
    far6 = [(INTERNET, FAR6, 443, "six")] if has_ipv6 else []
    net.resolver.names["only.dns.example"] = [FAR]
    with servers((INTERNET, FAR, 443, "far"), (INTERNET, FAR, 444, "other"), *far6) as (far, *_):
        got, r = probe(w, P443, f"tcp={FAR},443", f"tcp={FAR},444", f"udp={FAR},444", *(f"tcp={FAR6},443" for _ in far6), "tcp=only.dns.example,443",
                       "name=only.dns.example", options=["--proxy-net"])
        check(got[f"tcp={FAR},443"] == "far" and got.get(f"tcp={FAR6},443", "six") == "six" and got["tcp=only.dns.example,443"] == "far", r)
        check(got["name=only.dns.example"] == FAR and got[f"udp={FAR},444"] == "other" and set(far.seen) == {HOST4}, (far.seen, r))
        refused(got, {f"tcp={FAR},444": "EACCES"})
    check(", seccomp, TCP ports, private address\n" in r.err, r)


def loopback_attacks():
    six = ["tcp=::1,443", "udp=fe80::1%eth0,443"] if has_ipv6 else []
    return ["tcp=127.0.0.1,443", "tcp=127.0.0.2,443", "tcp=10.0.2.2,443", f"tcp={HOST4},443", "udp=127.0.0.1,443", "udp=10.0.2.2,443", *six]


def loopback(w):
    six = [(HOST, "::1", 443, "host")] if has_ipv6 else []
    with servers((HOST, "127.0.0.1", 443, "host"), *six) as hosts:
        attacks = loopback_attacks()
        got, r = probe(w, P443, *attacks, options=["--proxy-net"], wait=SILENT)
        check("host" not in got.values() and not any(h.seen for h in hosts), r)
        check("not enforced" not in r.err, r)
        # A pasta that maps the gateway to the host's loopback all the same is held by the rule…
        careless = 'for a; do [[ $a == --no-map-gw ]] || more+=("$a"); done; exec "$REAL" "${more[@]}"'
        with pasta_as(w, careless):
            got, r = probe(w, P443, *attacks, options=["--proxy-net"], wait=SILENT)
            check("host" not in got.values() and not any(h.seen for h in hosts), r)
            # …which is seen where no rule can be installed; and that is told.
            lacking = "socket,0=16,2=12:EPERM"
            got, r = probe(w, P443, "tcp=10.0.2.2,443", options=["--proxy-net"], lacking=lacking)
            check(got["tcp=10.0.2.2,443"] == "host", r)
        got, r = probe(w, P443, *attacks, options=["--proxy-net"], wait=SILENT, lacking=lacking)
        check("host" not in got.values(), r)
        check("not enforced: loopback-rule" in r.err and "private address" in r.err, r)
        r = w.run(P443, "true", "--proxy-net", "--strict", lacking=lacking)
        check(r.status == NOT_RUN and "loopback-rule" in r.err, r)


def inbound(w):
    script = ("import socket, sys; s = [socket.create_server(('0.0.0.0', p)) for p in (8080, 8123) if p == 8080 or not sys.argv[1:]];"
              "print('up', flush=True); sys.stdin.readline()")
    for policy, open_port in ((None, None), (BIND, 8080)):
        config = ["--config", w.policy(policy)] if policy else []
        child = start(w, [*config, "--proxy-net", "--quiet"], ["/usr/bin/python3", "-c", script, *(["one"] if policy else [])])
        check(child.stdout.readline() == "up\n", child)
        for port in (8080, 8123):
            answer = outside(f"tcp=127.0.0.1,{port}", f"tcp={HOST4},{port}", wait=SILENT)
            check(set(answer.values()) == ({"TIMEOUT"} if port == open_port else {"ECONNREFUSED"}), (port, answer))
        child.stdin.close()
        check(child.wait() == 0, child)


def denied(w):
    attacks = [f"tcp={FAR},443", f"udp={FAR},443", f"ping={FAR}"]
    six = [f"tcp={FAR6},443", f"udp={FAR6},443"] if has_ipv6 else []
    with servers((INTERNET, FAR, 443, "far"), (HOST, "127.0.0.1", 443, "host"), *((INTERNET, FAR6, 443, "far") for _ in six[:1])) as all_of:
        got, r = probe(w, None, *attacks, *six, "tcp=10.0.2.2,443", "udp=10.0.2.3,53", "local", options=["--proxy-net"])
        check(got.pop("local") == "ok" and not any(s.seen for s in all_of), r)
        check(set(got.values()) <= {"ECONNREFUSED", "EPERM", "ENETUNREACH", "EADDRNOTAVAIL"}, r)
        refused(got, {f"tcp={FAR},443": "ECONNREFUSED", f"udp={FAR},443": "EPERM"})
    check(", egress denied, private address\n" in r.err, r)


def without_pasta(w):
    look = "ip -o addr; touch ran"
    policy = P443 + f'[filesystem]\nwrite = ["."]\n'
    with servers((INTERNET, FAR, 443, "far")):
        for lacking, hide in (("clone3:EPERM", None), (None, PASTA), (None, TUN)):
            with bound("/dev/null", hide) if hide else bound("/dev/null", "/dev/null"):
                r = w.run(policy, look, "--proxy-net", lacking=lacking)
                check(r.status == 0 and HOST4 in r.out, r)
                check("warning: --proxy-net cannot be had here: the host's address stays visible\n" in r.err, r)
                check("not enforced: proxy-net: no private network: the host's address stays visible\n" in r.err, r)
                check("TCP ports\n" in r.err and "private address" not in r.err, r)
                got, r = probe(w, P443, f"tcp={FAR},443", f"tcp={FAR},444", options=["--proxy-net"], lacking=lacking)
                check(list(got.values()) == ["far", "EACCES"], r)
                gaps = [x for g in ("namespaces", "private-tmp", "private-home", "nested-deny") for x in ("--accept-gap", g)]
                os.unlink(w.path("W/ran"))
                r = w.run(policy, look, "--proxy-net", "--strict", *gaps, lacking=lacking)
                check(r.status == NOT_RUN and not os.path.exists(w.path("W/ran")), r)
        with bound("/dev/null", PASTA):
            got, r = probe(w, None, f"tcp={FAR},443", "local", options=["--proxy-net"])
            check(list(got.values()) == ["ENETUNREACH", "ok"] and "egress denied\n" in r.err, r)


def fixed_places(w):
    w.mkdir("fake")
    for name in ("pasta", "nft", "passt", "bailey-netfilter"):
        w.write(f"fake/{name}", f"#!/bin/sh\ntouch {w.path('W/fake-ran')}\nexit 1\n", 0o755)
    environment = {**w.environment, "PATH": f"{w.path('fake')}:{w.environment['PATH']}"}
    r = w.call("run", "--proxy-net", "/usr/bin/ip", "-o", "addr", environment=environment)
    check("10.0.2.15" in r.out and not os.path.exists(w.path("W/fake-ran")), r)


# ---- behind a broker ----

def brokered(w):
    with servers((HOST, "127.0.0.1", 8443, "broker"), (HOST, "127.0.0.1", 8444, "host"), (INTERNET, FAR, 443, "far")):
        for policy in (None, P443, ANY):
            got, r = probe(w, policy, "tcp=169.254.169.1,8443", "tcp=169.254.169.1,8444", f"tcp={FAR},443", "tcp=127.0.0.1,8444", "local",
                           options=BROKER)
            check(list(got.values()) == ["broker", "ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED", "ok"], r)
            check(", seccomp, egress broker\n" in r.err and "UDP" not in r.err, r)
        for words in ([], ["--"]):
            r = w.call("run", *BROKER, *words, "/usr/bin/env")
            check("BAILEY_SANDBOX_NET=broker\n" in r.out, r)
        r = w.call("run", "--egress-proxy=10.9.8.7:8443", "/usr/bin/python3", "-c", PROBE, "tcp=10.9.8.7,8443")
        check(r.out == "broker\n", r)
        r = w.run(None, "ip -o addr; ip -o link", *BROKER)
        check(not any(word in r.out for word in hidden()), r)


def not_isolated(w):
    """Files are then held by Landlock alone, the network as ever."""
    more = ["--no-isolate"]
    with servers((HOST, "127.0.0.1", 8443, "broker"), (HOST, "127.0.0.1", 443, "host"), (INTERNET, FAR, 443, "far"), (INTERNET, FAR, 444, "other")):
        got, r = probe(w, ANY, "tcp=169.254.169.1,8443", "tcp=169.254.169.1,443", f"tcp={FAR},443", f"udp={FAR},443", "local", options=[*BROKER, *more])
        check(list(got.values()) == ["broker", "ECONNREFUSED", "ECONNREFUSED", "EPERM", "ok"], r)
        check(", seccomp, egress broker\n" in r.err and "not enforced: isolation: " in r.err, r)
        got, r = probe(w, P443, f"tcp={FAR},443", f"tcp={FAR},444", "tcp=10.0.2.2,443", options=["--proxy-net", *more])
        check(list(got.values()) == ["far", "EACCES", "ECONNREFUSED"], r)
        check("TCP ports, private address\n" in r.err, r)


def locked(w):
    attacks = [f"tcp={FAR},443", f"tcp={FAR},8443", f"udp={FAR},443", f"udp={FAR},53", f"ping={FAR}", f"fastopen={FAR},443"]
    others = ["udp=169.254.169.1,8443", "ping=169.254.169.1", "udp=169.254.169.255,5353", "name=only.dns.example", "made=17,3", "made=2,3",
              "made=40,1", "tcp=169.254.169.3,8443", f"tcp={HOST4},8443"]
    attacks6 = [f"tcp={FAR6},443", f"udp={FAR6},443", f"ping={FAR6}"] if has_ipv6 else []
    others6 = ["udp=ff02::1%eth0,443", "udp=fe80::1%eth0,443", "tcp=fe80::1%eth0,8443"] if has_ipv6 else []
    net.resolver.names["only.dns.example"] = [FAR]
    far = [(INTERNET, FAR, p, "far") for p in (443, 8443, 53)] + [(INTERNET, FAR6, 443, "far") for _ in attacks6[:1]]
    with servers(*far, (HOST, HOST4, 8443, "host"), (HOST, "127.0.0.1", 8443, "broker")) as all_of:
        asked = len(net.resolver.asked)
        got, r = probe(w, PATIENT, *attacks, *others, *attacks6, *others6, options=BROKER)
        check(set(got.values()) <= {"ECONNREFUSED", "EPERM", "ENETUNREACH", "ENOTSUP", "EACCES", "EADDRNOTAVAIL", "EAI", "EAFNOSUPPORT",
                                     "EPROTONOSUPPORT"}, got)
        check(not any(s.seen for s in all_of) and len(net.resolver.asked) == asked, ([s.seen for s in all_of], r))
        refused(got, {a: got[a] for a in attacks if a != f"udp={FAR},53"})


def from_inside(w):
    for command, words in (("nft list ruleset", "ermitted|not supported"), ("nft flush ruleset", "ermitted|not supported"),
                           ("ip link set lo down", "ermitted"), ("ip route add 1.1.1.1 dev eth0", "ermitted"),
                           ("ip addr add 10.1.1.1/24 dev eth0", "ermitted"), ("unshare -Urn true", "unshare failed"), ("cat /dev/net/tun", "No such file")):
        r = w.run(None, f"PATH=$PATH:/usr/sbin:/sbin; {command}", *BROKER)
        check(r.status != 0 and re.search(words, r.err) and "table" not in r.out, (command, r))


def order(w):
    """pasta is given a namespace that is not its caller's and in which the rule stands already; the caller's own never has one."""
    record = w.mkdir("record", 0o777)
    w.write("rules.py", RULES)
    script = (f"/usr/bin/python3 {w.path('rules.py')} 'list ruleset' 4 3 3<&0 4<&1 >{record}/rules 2>{record}/errors\n"
              f"exec 3<&0; readlink /proc/self/fd/3 >{record}/namespace; exec 3<&-; exec \"$REAL\" \"$@\"")
    with pasta_as(w, script), servers((HOST, "127.0.0.1", 8443, "broker")):
        got, r = probe(w, None, "tcp=169.254.169.1,8443", options=BROKER)
        check(got == {"tcp=169.254.169.1,8443": "broker"}, r)
    text = w.read("record/rules")
    check("policy drop" in text and "ip daddr 169.254.169.1 tcp dport 8443 accept" in text, text + w.read("record/errors"))
    check(w.read("record/namespace").strip() != os.readlink("/proc/self/ns/net"), "the caller's namespace")
    ours = subprocess.run(["/usr/sbin/nft", "list", "ruleset"], capture_output=True, text=True, check=False)
    check("bailey" not in ours.stdout, ours)


def closed(w):
    policy = '[filesystem]\nwrite = ["."]\n'
    with servers((HOST, "127.0.0.1", 8443, "broker")):
        r = w.run(policy, "touch ran", *BROKER)
        check(r.status == 0 and os.path.exists(w.path("W/ran")), r)
        os.unlink(w.path("W/ran"))
        cases = [("socket,0=16,2=12:EPERM", None, "installing the packet filter rule"), ("clone3:EPERM", None, "creating the namespaces"),
                 (None, PASTA, "it is not in /usr/bin and /usr/local/bin"), (None, LIBRARY, "libnftables.so.1"),
                 (None, w.netfilter, "bailey-netfilter ended with status 127: it cannot be executed"),
                 (None, TUN, "by pasta")]
        for lacking, hide, words in cases:
            with bound("/dev/null", hide) if hide else bound("/dev/null", "/dev/null"):
                for strict in ([], ["--strict"]):
                    r = w.run(policy, "touch ran", *BROKER, *strict, lacking=lacking)
                    check(r.status == NOT_RUN and words in r.err and "Nothing was run" in r.err, r)
                    check(not os.path.exists(w.path("W/ran")), r)
        with pasta_as(w, "exit 1"):
            r = w.run(policy, "touch ran", *BROKER)
            check(r.status == NOT_RUN and not os.path.exists(w.path("W/ran")), r)
        away = f"{w.netfilter}-away"
        os.rename(w.netfilter, away)
        r = w.run(policy, "touch ran", *BROKER)
        check(r.status == NOT_RUN and "bailey-netfilter is neither beside bailey nor in /" in r.err and not os.path.exists(w.path("W/ran")), r)
        os.rename(away, w.netfilter)


def libraries(w):
    """Rules go through libnftables, in a program of its own that gets nothing else; nft is not needed."""
    with bound("/dev/null", NFT), servers((HOST, "127.0.0.1", 8443, "broker")):
        got, r = probe(w, None, "tcp=169.254.169.1,8443", f"udp={FAR},443", options=BROKER)
        check(got == {"tcp=169.254.169.1,8443": "broker", f"udp={FAR},443": "EPERM"}, r)
    with open(w.netfilter, "rb") as f:
        check(b"\0libnftables.so.1\0" in f.read(), "bailey-netfilter is not linked to libnftables")
    # The memory of a sandbox's first process is only for root to look at.
    account = ["setpriv", "--reuid", str(w.uid), "--regid", str(w.gid), "--clear-groups"] if w.as_root else []
    traced = subprocess.run(["strace", "-f", "-v", "-s", "200", "-e", "trace=execve,execveat,openat", *account, w.bailey, "run", *BROKER, "/bin/true"],
                            cwd=w.work, env=w.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = traced.stderr.splitlines()
    started = [line for line in lines if "execveat(" in line]
    words = r'("", \["bailey-netfilter"\], \[\]' + (")" if w.as_root else "|0x[0-9a-f]+, 0x[0-9a-f]+, 0x[0-9a-f]+)")
    check(len(started) == 1 and re.search(rf"execveat\(\d+, {words}, AT_EMPTY_PATH", started[0]), traced)
    process = started[0].split("]")[0]
    check(process.startswith("[pid") and any(line.startswith(process) and "libnftables.so.1" in line for line in lines), traced)
    check(not any("libnftables" in line for line in lines if not line.startswith(process)), traced)
    for arguments, rules, words in ((["x"], b"", "it takes no arguments"), ([], b"", "there are no rules"), ([], b"\n\0\n", "the rules are not text"),
                                    ([], b"#" * 65537, "there are too many rules"), ([], b"nonsense", "the kernel refused it: ")):
        done = subprocess.run([w.netfilter, *arguments], input=rules, capture_output=True, check=False)
        check(done.returncode == 1 and done.stdout.decode().startswith(words) and done.stdout.count(b"\n") == 1, done)


# ---- while it runs ----

def start(w, options, command, **more):
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    return subprocess.Popen([w.bailey, "run", *options, *command], cwd=w.work, env=w.environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **account, **more)


def ask(child, operation):
    child.stdin.write(operation + "\n")
    child.stdin.flush()
    return child.stdout.readline().strip()


def connected(w, *options):
    """A run that is asked, one operation after the other, and a pidfd of its pasta."""
    child = start(w, [*BROKER, *options], ["/usr/bin/python3", "-c", PROBE])
    check(ask(child, "tcp=169.254.169.1,8443") == "broker", child)
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as f:
                words = f.read().split("\0")
            with open(f"/proc/{name}/stat", encoding="ascii") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{parent}/stat", encoding="ascii") as f:
                grandparent = int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if words[0] == PASTA and grandparent == child.pid:
            return child, int(name), os.pidfd_open(int(name))
    raise AssertionError("pasta is not there")


def gone(pidfd):
    return bool(select.select([pidfd], [], [], 10)[0])


def stolen(w):
    """What holds is the rule: taken away by somebody who may, the way is open."""
    with servers((HOST, "127.0.0.1", 8443, "broker"), (INTERNET, FAR, 443, "far")):
        read, write = os.pipe()
        account = {"pass_fds": [write]}
        child = start(w, [*BROKER, "--report-fd", str(write)], ["/usr/bin/python3", "-c", PROBE], **account)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as f:
            pid = re.search(r'"pid":(\d+)', f.readline())[1]
        check(ask(child, f"tcp={FAR},443") == "ECONNREFUSED", child)
        rules(pid, "delete table inet bailey")
        check(ask(child, f"tcp={FAR},443") == "far", child)
        child.stdin.close()
        check(child.wait() == 0, child)


def pasta_killed(w):
    with servers((HOST, "127.0.0.1", 8443, "broker"), (INTERNET, FAR, 443, "far")):
        child, pid, pidfd = connected(w)
        os.kill(pid, signal.SIGKILL)
        check(gone(pidfd), "killed")
        line = child.stderr.readline()
        check("pasta ended: this run has no network any more" in line, line)
        for operation in ("tcp=169.254.169.1,8443", f"tcp={FAR},443", f"udp={FAR},443"):
            check(ask(child, operation) in ("ENETUNREACH", "ECONNREFUSED", "EPERM", "EADDRNOTAVAIL"), operation)
        check(ask(child, "local") == "ok", "loopback")
        child.stdin.close()
        check(child.wait() == 0, child)


def pasta_ends(w):
    """With the run, and when bailey is killed."""
    with servers((HOST, "127.0.0.1", 8443, "broker")):
        child, _, pidfd = connected(w)
        child.stdin.close()
        check(child.wait() == 0 and gone(pidfd), child)
        child, _, pidfd = connected(w)
        child.kill()
        check(child.wait() == -signal.SIGKILL and gone(pidfd), child)


def options(w):
    for words, told in ((["--egress-proxy", "127.0.0.1:80"], "choose one that nobody has"), (["--egress-proxy", "169.254.169.1"], "wants ADDRESS:PORT"),
                        (["--egress-proxy", "broker.example:80"], "wants ADDRESS:PORT"), (["--egress-proxy", "169.254.169.1:0"], "wants ADDRESS:PORT"),
                        (["--egress-proxy", "[::1]:80"], "wants ADDRESS:PORT"), ([*BROKER, *BROKER], "given twice"),
                        ([*BROKER, "--broker-socket", "x", "--broker-token-fd", "0", "--listen", "127.0.0.1:1"], "")):
        r = w.call("run", *words, "/bin/true")
        check(r.status == NOT_RUN and told in r.err and r.out == "", r)
    listed = w.call("--print-verbs").out
    check(not re.search(r"--[a-z-]*(netns|namespace|inside|nested)", listed), listed)


TESTS = [
    ("T012 T023 N003 N010 N011 N012: in the host's network the listed TCP ports are reached, and no other", ports),
    ("N013 C078: there the host's interfaces and its resolver are seen", interfaces),
    ("N035: bind_ports is what may be listened on, and it is reached as usual", listening),
    ("N003: allowed egress without a list is to every port, a bound port is not egress", any_port),
    ("N030: abstract sockets and signals are scoped in the host's network, too", scoped),
    ("T012: ports are held from Landlock's ABI 4 on; on ABI 3 that they are not is told", older_landlock),
    ("N001: without rules for ports that is told, and refused under --strict", without_rules),
    ("N012: without namespaces ports are held all the same", without_namespaces),
    ("N014 N017 N018: with --proxy-net nothing of the host's network is seen", needs_tun(private)),
    ("N017: a host without IPv6 has none inside", needs_tun(no_ipv6)),
    ("N015 C078: what is allowed leaves over the host's connection, names are looked up", needs_tun(carried)),
    ("N019 N020 C076: the host's loopback is out of reach, and the rule against it is told where it is not", needs_tun(loopback)),
    ("C077: what listens inside is not seen outside, unless it is a bound port", needs_tun(inbound)),
    ("N002 N014: what the policy denies does not leave a private network at all", needs_tun(denied)),
    ("N016: without pasta or namespaces the run goes on, and the host's address stays visible", needs_tun(without_pasta)),
    ("N016: pasta comes from fixed places, not from PATH", needs_tun(fixed_places)),
    ("N021 N022 N026 N027 C069 C079: behind a broker it is reached and nothing else", needs_tun(brokered)),
    ("N006 N014 N022: so it is with --no-isolate", needs_tun(not_isolated)),
    ("N022 N024 C032 C071 C073 C074: no other port, protocol or family, and no name is asked for", needs_tun(locked)),
    ("N025 C075: the rule can be neither seen nor changed from inside", needs_tun(from_inside)),
    ("N028 N029: the rule is in the run's own namespace before pasta is", needs_tun(order)),
    ("N023: with anything missing, nothing runs", needs_tun(closed)),
    ("D009: rules go through libnftables, which bailey-netfilter loads", needs_tun(libraries)),
    ("N022: the rule is what holds", needs_tun(stolen)),
    ("C081: with pasta gone there is no way out", needs_tun(pasta_killed)),
    ("C050: pasta ends with the run, and with bailey", needs_tun(pasta_ends)),
    ("N029: what the command line takes", options),
]

if __name__ == "__main__":
    main(TESTS)
