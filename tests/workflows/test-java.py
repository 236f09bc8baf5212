#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Java in a session: it reads no proxy variables, so that a program of it has to be told. apt-get install default-jdk-headless first."""

import json
import os
import shutil
import subprocess

import errand_world
from errand_site import Client, Handler, Site
from errand_test import case, run, source

errand_world.enter()

HOST, WORD = "api.example.com", "changeit"
JAVA = ["java", "-Djavax.net.ssl.trustStore=trust", f"-Djavax.net.ssl.trustStorePassword={WORD}"]
PATIENCE = 120  # seconds: it compiles what it runs


class Hello(Handler):
    def do_GET(self):
        self.answer(b"hello", kind="text/plain")


class JavaClient(Client):
    def __init__(self, t):
        if not shutil.which("javac"):
            t.fail("there is no Java: apt-get install default-jdk-headless")
        Site(t, "9.9.9.9", 443, Hello)
        super().__init__(t, [HOST])
        with open(source("tests/workflows/Fetch.java"), encoding="utf-8") as f:
            self.file("Fetch.java", f.read())
        trust = os.path.join(self.errand.project, "trust")
        subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "test", "-file", source("tests/peers/ca/ca.pem"), "-keystore", trust, "-storepass", WORD],
                       check=True, stderr=subprocess.DEVNULL)
        os.chmod(trust, 0o644)

    def fetch(self, *options, host=HOST):
        return self.run(*JAVA, *options, "Fetch.java", f"https://{host}/", seconds=PATIENCE)


@case("C091: a Java program that is told of no proxy fails at once; one that takes it from the environment reaches what others do", timeout=300)
def told(t):
    client = JavaClient(t)
    alone = client.fetch()
    t.equal(alone.returncode, 1, "exit status of one that is not told")
    t.matches(alone.stderr, r"UnknownHostException|Network is unreachable")
    # Its own options name a proxy and no password.
    half = client.run("sh", "-c", 'exec "$@" "-Dhttps.proxyPort=${https_proxy##*:}" Fetch.java "$0"', f"https://{HOST}/", *JAVA, "-Dhttps.proxyHost=127.0.0.1",
                      seconds=PATIENCE)
    t.contains(half.stderr, 'Proxy returns "HTTP/1.1 407', "what one says that has no credential")
    t.equal(client.fetch("-Dtold").stdout, "200 hello\n", "answer")
    t.contains(client.fetch("-Dtold", host="denied.example").stderr, "HTTP/1.1 403", "what is said of a refusal")


@case("C091: JAVA_TOOL_OPTIONS of the configuration are the session's", timeout=120)
def options(t):
    client = JavaClient(t)
    with open(client.errand.config, encoding="utf-8") as f:
        config = json.load(f)
    config["sandbox"].setdefault("env", {})["JAVA_TOOL_OPTIONS"] = "-Dkept=yes"
    client.errand.configure(config)
    t.equal(client.good("sh", "-c", "echo $JAVA_TOOL_OPTIONS"), "-Dkept=yes\n", "the variable")


run()
