/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the system call filter refuses, and why. All else up to SECCOMP_NEWEST_REVIEWED is allowed; the calls whose arguments
 * decide (socket, clone, ioctl, personality, …) are in seccomp-generate.c. Read at build time only. */

#include <errno.h>

/* The newest call that a human has looked at; what is newer gets ENOSYS. From 424 on the numbers are the same on every
 * architecture. 450 is set_mempolicy_home_node (Linux 5.17), the newest that libseccomp 2.5.4 knows. x32's numbers, which
 * have bit 30 set, are above it too. */
#define SECCOMP_NEWEST_REVIEWED 450U

typedef struct SeccompRow {
        const char *name;
        int error;
        const char *reason;
} SeccompRow;

static const SeccompRow seccomp_rows[] = {
        {"mount", EPERM, "changes what paths mean"},
        {"umount", EPERM, "uncovers what a mount hides"},
        {"umount2", EPERM, "uncovers what a mount hides"},
        {"pivot_root", EPERM, "changes what paths mean"},
        {"chroot", EPERM, "changes what paths mean"},
        {"open_tree", EPERM, "new mount API"},
        {"move_mount", EPERM, "new mount API"},
        {"mount_setattr", EPERM, "new mount API"},
        {"fsopen", EPERM, "new mount API; reaches file system code with unchecked options"},
        {"fsconfig", EPERM, "new mount API"},
        {"fsmount", EPERM, "new mount API"},
        {"fspick", EPERM, "new mount API"},

        {"unshare", EPERM, "namespaces give capabilities over much kernel code"},
        {"setns", EPERM, "joins another namespace"},
        {"clone3", ENOSYS, "its flags are in memory, out of a filter's sight; libcs fall back to clone"},

        {"ptrace", EPERM, "rules other processes"},
        {"process_vm_readv", EPERM, "reads other processes"},
        {"process_vm_writev", EPERM, "writes other processes"},
        {"process_madvise", EPERM, "changes other processes' memory"},
        {"pidfd_getfd", EPERM, "takes other processes' descriptors"},
        {"kcmp", EPERM, "tells kernel addresses apart"},
        {"move_pages", EPERM, "moves other processes' memory"},
        {"migrate_pages", EPERM, "moves other processes' memory"},

        {"bpf", EPERM, "kernel programs"},
        {"perf_event_open", EPERM, "watches kernel and other processes; many past holes"},
        {"userfaultfd", EPERM, "holds the kernel in the middle of a copy: an exploit's helper"},
        {"lookup_dcookie", EPERM, "kernel profiling"},
        {"io_uring_setup", ENOSYS, "does other calls' work, sockets included, past this filter"},
        {"io_uring_enter", ENOSYS, "as io_uring_setup"},
        {"io_uring_register", ENOSYS, "as io_uring_setup"},

        {"add_key", EPERM, "keyrings are shared by all processes of the user"},
        {"request_key", EPERM, "as add_key; also starts a program of the host"},
        {"keyctl", EPERM, "as add_key"},

        {"init_module", EPERM, "kernel modules"},
        {"finit_module", EPERM, "kernel modules"},
        {"delete_module", EPERM, "kernel modules"},
        {"create_module", EPERM, "kernel modules, before 2.6"},
        {"query_module", EPERM, "kernel modules, before 2.6"},
        {"get_kernel_syms", EPERM, "kernel modules, before 2.6"},
        {"kexec_load", EPERM, "another kernel"},
        {"kexec_file_load", EPERM, "another kernel"},
        {"reboot", EPERM, "the whole machine"},
        {"swapon", EPERM, "the whole machine"},
        {"swapoff", EPERM, "the whole machine"},
        {"acct", EPERM, "the whole machine"},
        {"quotactl", EPERM, "the whole file system"},
        {"quotactl_fd", EPERM, "the whole file system"},
        {"nfsservctl", EPERM, "the whole machine"},
        {"syslog", EPERM, "the kernel's log shows the host's devices and addresses"},
        {"vhangup", EPERM, "the caller's terminal"},
        {"uselib", EPERM, "obsolete loader"},
        {"sysfs", EPERM, "obsolete"},
        {"_sysctl", EPERM, "obsolete"},
        {"ustat", EPERM, "obsolete"},

        {"settimeofday", EPERM, "the machine's clock"},
        {"clock_settime", EPERM, "the machine's clock"},
        {"clock_settime64", EPERM, "the machine's clock"},
        {"clock_adjtime", EPERM, "the machine's clock"},
        {"clock_adjtime64", EPERM, "the machine's clock"},
        {"adjtimex", EPERM, "the machine's clock"},
        {"stime", EPERM, "the machine's clock"},
        {"sethostname", EPERM, "the sandbox's name is fixed"},
        {"setdomainname", EPERM, "the sandbox's name is fixed"},

        {"ioperm", EPERM, "hardware ports"},
        {"iopl", EPERM, "hardware ports"},
        {"pciconfig_read", EPERM, "hardware"},
        {"pciconfig_write", EPERM, "hardware"},
        {"pciconfig_iobase", EPERM, "hardware"},
        {"modify_ldt", EPERM, "16-bit segments: past holes, no use"},
        {"vm86", EPERM, "16-bit mode: past holes, no use"},
        {"vm86old", EPERM, "16-bit mode: past holes, no use"},

        {"open_by_handle_at", EPERM, "opens files by number, past every path rule"},
        {"name_to_handle_at", EPERM, "makes such numbers"},
        {"fanotify_init", EPERM, "watches whole file systems"},
        {"fanotify_mark", EPERM, "watches whole file systems"},
};
