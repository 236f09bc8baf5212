# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual page says what the program's help, its limits and its words say."""

import os
import re
import subprocess

import errand_test
from errand_test import case, run


def read(*parts):
    with open(errand_test.source(*parts), encoding="utf-8") as f:
        return f.read()


def page():
    """As one line, so that a sentence may be broken anywhere."""
    return " ".join(read("man", "errand-broker.8").split())


def limits():
    """The numbers of limits.h, times in seconds."""
    units = {"USEC_PER_SEC": 1, "USEC_PER_MSEC": 0.001}
    values = {}
    for name, text in re.findall(r"^#define (\w+) (.*?)(?:\s*/\*.*)?$", read("src/broker/limits.h"), re.M):
        text = re.sub(r"UINT64_C\((\d+)\)|(\d+)U\b", lambda m: m[1] or m[2], text)
        values[name] = eval(text, dict(units))  # of our own file: "(30 * USEC_PER_SEC)"
    return values


@case("manual: every option of the help is in the manual page, and no other; and the times are the same")
def options(t):
    result = subprocess.run([errand_test.program("errand-broker"), "--help"], capture_output=True, text=True, check=True)
    of_help = set(re.findall(r"--([a-z][a-z-]+)", result.stdout))
    of_page = set(re.findall(r"Fl Fl ([a-z-]+)", read("man", "errand-broker.8")))
    t.equal(of_page, of_help, "options")
    t.check(len(of_help) >= 7, of_help)
    v = limits()
    for value in (v["BROKER_IDLE_USEC"], v["TUNNEL_IDLE_USEC"]):
        t.contains(result.stdout, f"(default: {value})", "help")
        t.contains(page(), f"by default {value}.", "manual page")
    version = subprocess.run([errand_test.program("errand-broker"), "--version"], capture_output=True, text=True, check=True).stdout
    t.matches(version, r"^errand-broker [0-9.]+\n$", "version")


@case("manual: the limits are those of limits.h")
def numbers(t):
    v = limits()
    mib, kib = 1 << 20, 1 << 10
    lines = [f"more than {v['MEMORY_MAX'] // mib} MiB of private memory", f"{v['CONNECTIONS_MAX']} connections, fewer",
             f"is below {v['CONNECTIONS_MAX'] * 3 + 256}", f"{v['HELD_MAX'] // mib} MiB of buffers", f"{v['CLIENT_BUFFER_SIZE'] // kib} KiB and 128 fields for a request head",
             f"{v['HEAD_TIMEOUT_USEC']} seconds for a request head", f"{v['IDLE_TIMEOUT_USEC']} seconds between requests",
             f"{v['EXCHANGE_STALL_USEC']} seconds in which a request", f"{v['TUNNEL_IDLE_USEC']} seconds in which a tunnel",
             f"{v['RESPONSE_MAX'] // mib} MiB for a provider's answer", f"{v['LOOKUPS_MAX']} name lookups", f"{v['LOOKUP_TIMEOUT_USEC']} seconds for a name lookup",
             f"{v['DIAL_TIMEOUT_USEC']} seconds to connect", f"{v['ANSWER_TIMEOUT_USEC']} seconds for a client to take", f"{v['GRANTS_MAX']} grants",
             f"{v['PROVIDERS_MAX']} providers", f"{v['SPOOL_QUEUE_MAX']} receipts that wait", f"up to {v['SPOOL_QUEUE_MAX']} of them",
             f"{v['HANDOVER_TIMEOUT_USEC']} seconds for the hand-over", f"{v['TOKEN_TRIES_MAX']} wrong tokens", "After three wrong tokens",
             f"FileDescriptorStoreMax={5 + v['PROVIDERS_MAX']}"]
    text = page()
    t.each(lines, lambda line: t.contains(text, line, "manual page"))
    t.contains(read("src/broker/http1.h"), "#define HTTP1_FIELDS_MAX 128U", "http1.h")
    t.contains(read("src/broker/keep.h"), "#define KEEP_MAX (5U + PROVIDERS_MAX)", "keep.h")
    broker = read("src/broker/broker.c")
    for line in ("#define DESCRIPTORS_RESERVED 256U", "#define DESCRIPTORS_PER_CONNECTION 3U"):
        t.contains(broker, line, "broker.c")


@case("manual: the reasons of answers on a provider's route are in the manual page")
def reasons(t):
    source = read("src/broker/route.c") + read("src/broker/answer-head.c") + read("src/broker/exchange.c")
    found = set(re.findall(r'(?:turn_away\(call, |exchange_fail\(e, \w+, )(?:403|502), "([^"]+)"', source)) - {"Bad Gateway"}
    t.check(len(found) >= 5, f"found {found}")
    t.each(sorted(found), lambda reason: t.contains(page().replace(" , ", " "), reason, "manual page"))
    t.contains(read("src/broker/client-hello.h"), "#define CLIENT_HELLO_MAX (8U * 1024U)", "client-hello.h")


@case("manual: the units that are installed keep as many descriptors as a broker stores")
def units(t):
    """A store that is too small leaves out the listener, which comes last, and nobody is told."""
    found = []
    for directory, _, files in os.walk(errand_test.source("systemd")):
        for name in files:
            with open(os.path.join(directory, name), encoding="utf-8") as f:
                found += [(name, int(n)) for n in re.findall(r"^FileDescriptorStoreMax=(\d+)$", f.read(), re.M)]
    for name, number in found:
        t.check(number >= 5 + limits()["PROVIDERS_MAX"], lambda n=name, m=number: f"{n}: {m}")
    t.note(f"{len(found)} units say it")


@case("manual: every status and reason of the broker's own answers is explained")
def answers(t):
    rows = re.findall(r"\{(\d{3}), \"([^\"]+)\"", read("src/broker/answers.c"))
    rows += re.findall(r"(?:turn_away\(call|connection_answer\(c|exchange_fail\(e, RECEIPT_\w+), (\d{3}), \"([^\"]+)\"",
                       read("src/broker/route.c") + read("src/broker/exchange.c") + read("src/broker/answer-head.c") + read("src/broker/relay-answer.c"))
    t.check(len(rows) > 12, rows)
    text = page()
    for status, reason in rows:
        if reason[0].islower():  # words of the product; the others are HTTP's
            t.contains(text, f".It {status} {reason}", "manual page")
        elif status != "500":
            t.matches(text, rf"\.It (\d+ , )?{status}\b", "manual page")


@case("manual: the messages that it explains are the program's")
def messages(t):
    sources = " ".join(read("src/broker", name) for name in ("control.c", "connection.c", "receipts.c", "handover.c", "restore.c", "keep.c", "acceptor.c"))
    sources = re.sub(r"\"\s+\"", "", sources)
    part = read("man", "errand-broker.8").split(".Sh DIAGNOSTICS")[1]
    found = re.findall(r"^\.It (.+)$", part, re.M)
    t.check(len(found) >= 8, found)

    def check(line):
        line = line.removeprefix("session ID: ")
        # What the program fills in.
        pattern = re.escape(line).replace(r"3\ wrong", "%u wrong").replace(r"than\ N\ ", r"than %zu ")
        pattern = pattern.replace(r"the\ listener\ cannot", r"(the listener|%s) cannot").replace(r"\ ", " ")
        t.matches(sources, pattern, "sources")
    t.each(found, check)


if __name__ == "__main__":
    run()
