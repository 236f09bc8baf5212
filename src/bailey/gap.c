/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/gap.h"
#include "basic/text.h"

typedef struct GapWords {
        const char *name;
        const char *description;
} GapWords;

static const GapWords gap_table[_GAP_MAX] = {
        [GAP_NAMESPACES] = {"namespaces",
                "no user namespaces: paths that are not granted, host processes and network addresses stay visible; sockets at paths and "
                "System V IPC can be used, modes, times and attributes of files changed, processes of the account slowed down, and "
                "programs that are granted for reading executed"},
        [GAP_ISOLATION] = {"isolation",
                "paths that are not granted, host processes and what /sys says of the host's network stay visible; sockets at paths and "
                "System V IPC can be used, modes, times and attributes of files changed, processes of the account slowed down, and programs "
                "that are granted for reading executed"},
        [GAP_LANDLOCK] = {"landlock", "no Landlock: granted paths are held by the mounts alone; directories that a service hands over, ioctls of "
                                      "granted devices and the session's own files in /proc are not"},
        [GAP_LANDLOCK_REFER] = {"landlock-refer", "Landlock is older than ABI 2: files cannot be renamed between directories"},
        [GAP_LANDLOCK_TRUNCATE] = {"landlock-truncate", "Landlock is older than ABI 3: truncation of files is not restricted by it"},
        [GAP_LANDLOCK_IOCTL] = {"landlock-ioctl", "Landlock is older than ABI 5: device ioctls are not restricted"},
        [GAP_LANDLOCK_SCOPE] = {"landlock-scope",
                "Landlock is older than ABI 6: abstract sockets and signals are held by the namespaces alone, "
                "abstract sockets in the host's network by nothing"},
        [GAP_LANDLOCK_NETWORK] = {"landlock-network",
                "Landlock is older than ABI 4: TCP ports are not restricted"},
        [GAP_SECCOMP] = {"seccomp", "no system call filter"},
        [GAP_SYSFS] = {"sysfs", "no fresh /sys can be mounted here: there is none inside"},
        [GAP_NESTED_DENY] = {"nested-deny", "a path denied inside a granted directory is not protected"},
        [GAP_READ_ONLY] = {"read-only", "a read-only path inside a writable directory is not protected"},
        [GAP_PRIVATE_TMP] = {"private-tmp", "/tmp and /dev/shm are not private"},
        [GAP_PRIVATE_HOME] = {"private-home", "the private home is not at the real home's path"},
        [GAP_PROXY_NET] = {"proxy-net", "no private network: the host's address stays visible"},
        [GAP_LOOPBACK_RULE] = {"loopback-rule",
                "no packet filter rule here: that the host's loopback is out of reach is left to pasta alone"},
        [GAP_RESOURCES] = {"resources", "not all limits of memory, processes and CPU are applied"},
};

const char *gap_to_string(Gap g) {
        return g >= 0 && g < _GAP_MAX ? gap_table[g].name : NULL;
}

Gap gap_from_string(const char *s) {
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (streq(gap_table[g].name, s))
                        return g;
        return _GAP_INVALID;
}

const char *gap_describe(Gap g) {
        return g >= 0 && g < _GAP_MAX ? gap_table[g].description : NULL;
}

void gaps_add_json(JsonWriter *w, GapSet gaps) {
        json_open_array(w, "not_enforced");
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (gaps & ((GapSet) 1 << g)) {
                        json_open_object(w, NULL);
                        json_add_string(w, "name", gap_to_string(g));
                        json_add_string(w, "text", gap_describe(g));
                        json_close_object(w);
                }
        json_close_array(w);
}
