/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a command on a kernel that lacks something: without CALL[,ARGUMENT=VALUE…]:ERROR… -- COMMAND [ARGUMENT…]
 * e.g. "without landlock_create_ruleset:ENOSYS ioctl,1=0x8914:EPERM -- bailey …". Arguments are compared whole. With
 * KILL instead of an error whoever makes the call is killed. */

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
        const char *name;
        int error;
} errors[] = {
        {"EPERM", EPERM},   {"EACCES", EACCES}, {"ENOSYS", ENOSYS}, {"ENOSPC", ENOSPC},
        {"EINVAL", EINVAL}, {"EUSERS", EUSERS}, {"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM},
};

__attribute__((noreturn)) static void die(const char *what) {
        fprintf(stderr, "without: %s: %s\n", what, strerror(errno));
        exit(98);
}

static int error_number(const char *name) {
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
                if (strcmp(errors[i].name, name) == 0)
                        return errors[i].error;
        errno = EINVAL;
        die(name);
}

static void add_rule(scmp_filter_ctx context, char *rule) {
        struct scmp_arg_cmp arguments[6];
        unsigned n_arguments = 0;
        char *colon = strrchr(rule, ':'), *save = NULL;

        if (!colon) {
                errno = EINVAL;
                die(rule);
        }
        *colon = 0;
        char *name = strtok_r(rule, ",", &save);
        int number = name ? seccomp_syscall_resolve_name(name) : __NR_SCMP_ERROR;
        if (number == __NR_SCMP_ERROR) {
                errno = ENOSYS;
                die(rule);
        }
        for (char *p = strtok_r(NULL, ",", &save); p && n_arguments < 6; p = strtok_r(NULL, ",", &save)) {
                char *equals;
                unsigned index = (unsigned) strtoul(p, &equals, 10);
                arguments[n_arguments++] = (struct scmp_arg_cmp) {index, SCMP_CMP_EQ, strtoull(equals + 1, NULL, 0), 0};
        }
        uint32_t action = strcmp(colon + 1, "KILL") == 0 ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO((uint32_t) error_number(colon + 1));
        int r = seccomp_rule_add_array(context, action, number, n_arguments, arguments);
        if (r < 0) {
                errno = -r;
                die(rule);
        }
}

int main(int argc, char *argv[]) {
        scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
        int i = 1;

        /* The calls of other architectures are not looked at. */
        if (!context || seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW) < 0)
                die("seccomp_init");
        for (; i < argc && strcmp(argv[i], "--") != 0; i++)
                add_rule(context, argv[i]);
        if (i + 1 >= argc) {
                errno = EINVAL;
                die("no command");
        }
        int r = seccomp_load(context);
        if (r < 0) {
                errno = -r;
                die("seccomp_load");
        }
        execvp(argv[i + 1], argv + i + 1);
        die(argv[i + 1]);
}
