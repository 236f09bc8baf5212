# SPDX-License-Identifier: LGPL-2.1-or-later
"""What real tools try: rows of a name, the program without which there is nothing to try, a shell command, what the refusal says (a
regular expression), ids. The names in braces are the fixtures of test-escape.py. Each command succeeds without a sandbox."""

NOT_PERMITTED, NOT_THERE, NO_ACCESS = "Operation not permitted", "No such file", "Permission denied"
# Of a process by its number: there is none of that number, whatever a tool makes of that.
NO_PROCESS = "No such process|No such file|not found|failed"
BY_PYTHON = "{python} -c "

TOOLS = [
    ("unshare-user", "unshare", "unshare -U true", NOT_PERMITTED, "T017"),
    ("unshare-root", "unshare", "unshare -r id", NOT_PERMITTED, "T017"),
    ("unshare-mount", "unshare", "unshare -rm mount -t tmpfs none {work}/mount", NOT_PERMITTED, "T017 C041"),
    ("unshare-processes", "unshare", "unshare -rpf --mount-proc true", NOT_PERMITTED, "T017"),
    ("unshare-network", "unshare", "unshare -rn true", NOT_PERMITTED, "T017"),
    ("unshare-chroot", "unshare", "unshare -rR / true", NOT_PERMITTED, "T017 C041"),
    ("bubblewrap", "bwrap", "bwrap --ro-bind / / true", "namespace|Operation not permitted", "T017 C007"),
    ("setarch", "setarch", "setarch --read-implies-exec true", NOT_PERMITTED, "C038"),
    ("strace", "strace", "strace -o /dev/null true", NOT_PERMITTED, "T016"),
    ("gdb", "gdb", "gdb -nx -batch -p {victim} -ex detach 2>&1 | grep -q 'Inferior 1.*detached' || {{ echo could not >&2; false; }}",
     "could not", "T004 T016"),
    ("cat", "cat", "cat {root}/private/secret", NOT_THERE, "T009 T010"),
    ("cat-dots", "cat", "cat ../../../../../../../..{root}/private/secret", NOT_THERE, "T009 T010"),
    ("cat-denied", "cat", "cat {work}/denied/secret", NO_ACCESS, "C020 T024"),
    ("cat-descriptor", "cat", "cat /proc/self/fd/{inherited}/secret", NOT_THERE, "C056"),
    ("cat-root", "cat", "cat /proc/self/root{root}/private/secret", NOT_THERE, "T009 T010"),
    ("cat-victim", "cat", "cat /proc/{victim}/environ", NOT_THERE, "T020"),
    ("dd-victim", "dd", "dd if=/proc/{victim}/mem of=/dev/null bs=1 count=1 iflag=skip_bytes skip={address}", NOT_THERE, "T004"),
    ("ls", "ls", "ls {root}/private", NOT_THERE, "T010"),
    ("find", "find", "find {root} -path '*private/secret' | grep . || {{ echo nothing >&2; false; }}", "nothing", "T010"),
    ("symlink", "ln", "ln -s {root}/private {work}/tool-link && cat {work}/tool-link/secret", NOT_THERE, "C014"),
    ("hard-link", "ln", "ln {root}/data/link {work}/tool-linked", "cross-device|Invalid", "T009"),
    ("append", "sh", "echo 'touch /tmp/x' >>{homefile}", "nonexistent|No such file|cannot create", "T002"),
    ("tee", "tee", "echo x | tee {root}/data/write", "Read-only|Permission denied", "T002"),
    ("sed", "sed", "sed -i s/text/x/ {root}/data/mode", "Read-only|Permission denied|couldn't", "T002"),
    ("truncate", "truncate", "truncate -s 0 {root}/data/truncate", "Read-only|Permission denied", "T009"),
    ("chmod", "chmod", "chmod 666 {root}/data/mode", "Read-only", "T009"),
    ("touch", "touch", "touch {root}/data/times", "Read-only|Permission denied", "T009"),
    ("touch-new", "touch", "touch {root}/private/tool", NOT_THERE, "T002"),
    ("cp-program", "cp", "cp /usr/bin/true {root}/data/tool", "Read-only|Permission denied", "T002"),
    ("run", "sh", "{root}/private/true", "not found", "T009"),
    ("loader", "sh", "{loader} {root}/data/true", "failed to map|cannot", "T009"),
    ("kill", "sh", "kill -CONT {victim}", "No such process", "T014"),
    ("renice", "renice", "renice -n $(nice) -p {victim}", NO_PROCESS, "T004"),
    ("taskset", "taskset", "taskset -p {victim}", NO_PROCESS, "T011"),
    ("chrt", "chrt", "chrt -o -p 0 {victim}", NO_PROCESS, "T004"),
    ("ionice", "ionice", "ionice -c 2 -n 7 -p {victim}", NO_PROCESS, "T004"),
    ("prlimit", "prlimit", "prlimit --core=0 --pid {victim}", NO_PROCESS, "T004"),
    ("ps", "ps", "ps -p {victim} -o pid= || {{ echo none >&2; false; }}", "none", "T011"),
    ("ipcs", "ipcs", "ipcs -m -i {shm} | grep -q shmid || {{ echo none >&2; false; }}", "none|not found", "T004"),
    ("bash-tcp", "bash", "bash -c '</dev/tcp/127.0.0.1/{tcp}'", "Connection refused", "N002"),
    ("socat-abstract", "socat", "socat -u /dev/null ABSTRACT-CONNECT:{abstract}", "Connection refused", "T013"),
    ("python-path-socket", "sh", BY_PYTHON + "'import socket; socket.socket(socket.AF_UNIX).connect(\"{root}/private/socket\")'", NOT_THERE,
     "C064"),
    ("python-memory", "sh", BY_PYTHON + "'open(\"/proc/self/mem\", \"r+b\", 0)'", NO_ACCESS, "T009"),
    ("python-trace", "sh", BY_PYTHON + "'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
     "c.ptrace(16902, {victim}, None, None) and exit(os.strerror(ctypes.get_errno()))'", NOT_PERMITTED, "T004 T016"),
    ("python-keys", "sh", BY_PYTHON + "'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
     "c.syscall({keyctl}, 0, -4, 1) < 0 and exit(os.strerror(ctypes.get_errno()))'", NOT_PERMITTED, "C044"),
    ("nested", "sh", "{root}/bin/bailey run --only-config --config {root}/all.toml --quiet -- cat {root}/private/secret",
     NOT_THERE + "|does not exist", "T017 C007 Q024"),
    # Those that change what others look at.
    ("move", "mv", "mv {work}/island {work}/tool-moved", "busy", "C020"),
    ("remove", "rm", "rm -r {work}/denied", "busy|Permission denied", "C020"),
]
