/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "bailey/failure.h"
#include "basic/io.h"
#include "basic/log.h"

static const char *const stage_table[_STAGE_MAX] = {
        [STAGE_CALLER] = "checking the caller",
        [STAGE_PROCESS] = "starting the sandbox's first process",
        [STAGE_NAMESPACES] = "creating the namespaces",
        [STAGE_IDS] = "mapping user and group ids in the new user namespace",
        [STAGE_LOOPBACK] = "bringing up loopback in the new network namespace",
        [STAGE_NETFILTER] = "installing the packet filter rule",
        [STAGE_PASTA] = "connecting the network namespace by pasta",
        [STAGE_HOSTNAME] = "setting the host name in the new namespace",
        [STAGE_NESTING] = "forbidding further namespaces",
        [STAGE_ROOT] = "mounting the new root",
        [STAGE_STEP] = "building the new root",
        [STAGE_PIVOT] = "changing to the new root",
        [STAGE_CONSOLE] = "opening the terminal",
        [STAGE_LISTENER] = "opening the broker's listener",
        [STAGE_HANDOVER] = "handing the listener to the broker",
        [STAGE_WORKING_DIRECTORY] = "entering the working directory",
        [STAGE_REPORT] = "writing the report",
        [STAGE_LANDLOCK] = "restricting file access by Landlock",
        [STAGE_CAPABILITIES] = "dropping capabilities",
        [STAGE_SECCOMP] = "loading the system call filter",
        [STAGE_DESCRIPTORS] = "closing inherited file descriptors",
        [STAGE_GAP] = "checking what this host can enforce",
        [STAGE_EXECUTE] = "executing the command",
};

const char *stage_describe(Stage s) {
        return s >= 0 && s < _STAGE_MAX ? stage_table[s] : "an unknown step";
}

int failure_set(Failure *f, Stage stage, int error, const char *format, ...) {
        va_list ap;

        error = error < 0 ? -error : error;
        f->stage = stage;
        f->error = error;
        va_start(ap, format);
        (void) vsnprintf(f->text, sizeof(f->text), format, ap);
        va_end(ap);
        return error > 0 ? -error : -EIO;
}

bool nesting_forbidden(void) {
        _cleanup_free_ char *text = NULL;

        return read_file_full("/proc/sys/user/max_user_namespaces", 64, &text, NULL) >= 0 && strcmp(text, "0\n") == 0;
}

const char *failure_hint(const Failure *f) {
        bool denied = f->error == EPERM || f->error == EACCES;

        switch (f->stage) {
        case STAGE_NAMESPACES:
                if (nesting_forbidden())
                        return "nested sandboxing is not permitted here: run it outside the surrounding sandbox, "
                               "or raise user.max_user_namespaces";
                if (denied)
                        return "unprivileged user namespaces are switched off or filtered; allow them "
                               "(kernel.unprivileged_userns_clone, AppArmor, the container's seccomp profile)";
                if (f->error == ENOSYS)
                        return "this kernel or a system call filter around this process does not let it create namespaces";
                return NULL;
        case STAGE_IDS:
        case STAGE_LOOPBACK:
        case STAGE_HOSTNAME:
        case STAGE_NESTING:
        case STAGE_ROOT:
        case STAGE_PIVOT:
                return denied ? "the new user namespace has no privileges; usually AppArmor restricts unprivileged user namespaces "
                                "(kernel.apparmor_restrict_unprivileged_userns): allow it for bailey by a profile, "
                                "or a surrounding container filters the call"
                              : NULL;
        case STAGE_STEP:
                if (denied && strncmp(f->text, "proc ", 5) == 0)
                        return "the surrounding container masks parts of /proc, so the kernel gives no fresh one; run the container "
                               "with an unmasked /proc (podman: --security-opt unmask=ALL, docker: --security-opt systempaths=unconfined)";
                if (f->error == ESTALE)
                        return "it is no longer the file that the policy named; run again";
                if (f->error == ELOOP)
                        return "a symbolic link is in the way; name the real path in the policy";
                if (f->error == EROFS)
                        return "the place to mount it at does not exist and cannot be made; create it or grant another path";
                return denied ? "the caller cannot use this path, or a surrounding container or AppArmor profile forbids mounts" : NULL;
        case STAGE_NETFILTER:
                return "the rule is what closes the other ways out; this needs nftables in the kernel, libnftables1, and bailey-netfilter";
        case STAGE_PASTA:
                return "install the package passt, and see that /dev/net/tun is there for everybody";
        case STAGE_HANDOVER:
                return "see that this session's broker runs";
        default:
                return NULL;
        }
}

void failure_warn(const Failure *f) {
        const char *hint = failure_hint(f), *open = f->text[0] ? " (" : "", *close = f->text[0] ? ")" : "";

        if (f->error > 0)
                (void) log_warning_errno(f->error, "%s%s%s%s failed: %m%s%s", stage_describe(f->stage), open, f->text, close,
                                         hint ? "; " : "", hint ?: "");
        else
                log_warning("%s%s%s%s failed%s%s", stage_describe(f->stage), open, f->text, close, hint ? "; " : "", hint ?: "");
}

int failure_log(const Failure *f) {
        const char *hint = failure_hint(f);
        const char *open = f->text[0] ? " (" : "", *close = f->text[0] ? ")" : "";
        const char *separator = hint ? "; " : "";

        if (!hint)
                hint = "";
        if (f->error > 0)
                return log_error_errno(f->error, "%s%s%s%s failed: %m%s%s. Nothing was run", stage_describe(f->stage), open,
                                       f->text, close, separator, hint);
        log_error("%s%s%s%s failed%s%s. Nothing was run", stage_describe(f->stage), open, f->text, close, separator, hint);
        return -EIO;
}
