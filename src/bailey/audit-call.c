/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "bailey/audit-call.h"
#include "bailey/audit-judge.h"
#include "bailey/interpreter.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "basic/utf8.h"

#define PAGE 4096U /* no architecture has smaller ones: a string is read up to such a border, as what follows may not be there */

static uint64_t argument(const Audit *a, int n) {
        return a->request->data.args[n];
}

static ssize_t read_memory(const Audit *a, uint64_t address, void *to, size_t size) {
        struct iovec local = {to, size}, remote = {(void *) (uintptr_t) address, size};

        ssize_t n = process_vm_readv((pid_t) a->request->pid, &local, 1, &remote, 1, 0);
        return n < 0 ? -errno : n;
}

/* -EFAULT as the kernel will say; -ENAMETOOLONG. */
static int read_string(const Audit *a, uint64_t address, char ret[PATH_MAX]) {
        size_t size = 0;

        while (size < PATH_MAX) {
                size_t n = MIN((size_t) (PAGE - (address + size) % PAGE), PATH_MAX - size);
                ssize_t got = read_memory(a, address + size, ret + size, n);
                if (got < 0)
                        return (int) got;
                if (memchr(ret + size, 0, (size_t) got))
                        return 0;
                if ((size_t) got < n)
                        return -EFAULT;
                size += n;
        }
        return -ENAMETOOLONG;
}

/* What a call gets wrong by itself goes by without a trace, as it does nothing; what we may not look at is lost. */
static void failed(AuditedCall *c, int error) {
        c->unreadable |= error == -EPERM || error == -EACCES || error == -ENOMEM;
}

static int own_link(const Audit *a, const char *name, char ret[PATH_MAX]) {
        char place[64];

        (void) snprintf(place, sizeof(place), "/proc/%d/%s", (int) a->request->pid, name);
        ssize_t n = readlink(place, ret, PATH_MAX - 1);
        if (n < 0)
                return -errno;
        ret[n] = 0;
        /* What was removed has no place any more, and pipes never had one. */
        return ret[0] == '/' && !endswith(ret, " (deleted)") ? 0 : -ENOENT;
}

static int directory_of(const Audit *a, int fd, char ret[PATH_MAX]) {
        char name[32];

        (void) snprintf(name, sizeof(name), "fd/%d", fd);
        return own_link(a, fd == AT_FDCWD ? "cwd" : name, ret);
}

/* The same root for all: nobody inside may change it, and outside nobody can. */
static int find_root(Audit *a) {
        char place[64];

        if (a->view.root >= 0)
                return 0;
        (void) snprintf(place, sizeof(place), "/proc/%d/root", (int) a->request->pid);
        a->view.root = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return a->view.root < 0 ? -errno : 0;
}

static AuditedPath *add_path(AuditedCall *c, unsigned operations) {
        if (!c->paths)
                c->paths = calloc(AUDITED_MAX, sizeof(AuditedPath));
        if (!c->paths || c->n_paths == AUDITED_MAX) {
                c->unreadable = true;
                return NULL;
        }
        c->paths[c->n_paths] = (AuditedPath) {.operations = operations};
        return &c->paths[c->n_paths++];
}

/* Resolves what a process names: text by itself, or from a directory that it has open. */
static AuditedPath *resolve(Audit *a, AuditedCall *c, int directory, const char *text, bool follow, unsigned operations) {
        char from[PATH_MAX] = "", whole[2 * PATH_MAX];
        const View view = {.read_link = process_read_link, .followed = process_followed, .context = &a->view};

        int r = find_root(a);
        if (r >= 0 && text[0] != '/')
                r = directory_of(a, directory, from);
        if (r < 0) {
                failed(c, r);
                return NULL;
        }
        (void) snprintf(whole, sizeof(whole), "%s/%s", from, text);
        a->view.thread = (pid_t) a->request->pid;
        AuditedPath *p = add_path(c, operations);
        r = p ? view_resolve(&view, whole, follow || endswith(text, "/"), p->path) : 0;
        if (p && r >= 0)
                p->links = TAKE_PTR(a->view.links);
        a->view.links = strv_free(a->view.links);
        if (r < 0) {
                c->n_paths--;
                return NULL;
        }
        return p;
}

static AuditedPath *resolve_argument(Audit *a, AuditedCall *c, int directory, int path, bool follow, unsigned operations) {
        char text[PATH_MAX];

        if (argument(a, path) == 0)
                return NULL; /* utimensat() and the like: of the descriptor itself */
        int r = read_string(a, argument(a, path), text);
        if (r < 0)
                failed(c, r);
        if (r < 0 || !*text)
                return NULL;
        return resolve(a, c, directory < 0 ? AT_FDCWD : (int) argument(a, directory), text, follow, operations);
}

static void read_open(Audit *a, const AuditCall *call, AuditedCall *c) {
        struct open_how how = {};
        uint64_t flags = argument(a, call->flags);
        unsigned operations = 0;

        if (call->action == AUDIT_OPEN_HOW) {
                ssize_t n = read_memory(a, flags, &how, sizeof(how));
                if (n != sizeof(how)) {
                        failed(c, (int) MIN(n, 0));
                        return;
                }
                flags = how.flags;
        }
        uint64_t mode = flags & O_ACCMODE;
        if (flags & O_PATH)
                operations = ACCESSED_LOOK;
        else {
                operations = mode == O_RDONLY ? ACCESSED_READ : mode == O_WRONLY ? ACCESSED_WRITE : ACCESSED_READ | ACCESSED_WRITE;
                if ((flags & O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE)
                        operations |= ACCESSED_WRITE;
        }
        bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
        AuditedPath *p = resolve_argument(a, c, call->directory, call->path, follow, operations);
        if (p)
                p->create = flags & O_CREAT;
}

/* The kernel opens a script's interpreter and a program's loader by itself. */
static void add_interpreters(Audit *a, AuditedCall *c) {
        char text[PATH_MAX];

        for (unsigned i = 0; i < INTERPRETERS_MAX && c->n_paths > 0; i++) {
                const char *path = c->paths[c->n_paths - 1].path;
                int r = interpreter_of(a->view.root, path, text);
                if (r <= 0 || text[0] != '/' || !resolve(a, c, AT_FDCWD, text, true, ACCESSED_EXECUTE))
                        return;
        }
}

static void read_execute(Audit *a, const AuditCall *call, AuditedCall *c) {
        char path[PATH_MAX];

        if (!a->target_seen) {
                /* The first is the target's start, out of a process of bailey's own, whose memory is nobody's to read. */
                c->first = true;
                AuditedPath *p = add_path(c, ACCESSED_EXECUTE);
                if (!p)
                        return;
                (void) snprintf(p->path, sizeof(p->path), "%s", a->plan->executable);
                /* Nor is its root, but the policy was made of what the host has. */
                a->view.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
                add_interpreters(a, c);
                return;
        }
        if (call->flags >= 0 && (argument(a, call->flags) & AT_EMPTY_PATH)) {
                if (directory_of(a, (int) argument(a, call->directory), path) < 0 || !resolve(a, c, AT_FDCWD, path, true, ACCESSED_EXECUTE))
                        return; /* a memfd: there is no path to be granted */
        } else if (!resolve_argument(a, c, call->directory, call->path, true, ACCESSED_EXECUTE))
                return;
        add_interpreters(a, c);
}

static void read_map(Audit *a, AuditedCall *c) {
        char path[PATH_MAX];

        int r = directory_of(a, (int) argument(a, 4), path);
        if (r >= 0 && !startswith(path, "/dev/") && !startswith(path, "/memfd:"))
                (void) resolve(a, c, AT_FDCWD, path, true, ACCESSED_EXECUTE);
        else if (r < 0)
                failed(c, r);
}

static void read_unix(Audit *a, const struct sockaddr_un *address, size_t size, AuditedCall *c) {
        size_t n = size - offsetof(struct sockaddr_un, sun_path);
        char text[sizeof(address->sun_path) + 1] = "";

        if (size <= offsetof(struct sockaddr_un, sun_path))
                return;
        memcpy(text, address->sun_path, MIN(n, sizeof(address->sun_path)));
        if (text[0]) {
                (void) resolve(a, c, AT_FDCWD, text, true, c->operations);
                return;
        }
        /* One made inside is the sandbox's own. */
        if (c->operations == ACCESSED_BIND)
                return;
        for (size_t i = 1; i < MIN(n, sizeof(address->sun_path)); i++)
                c->address[i - 1] = text[i] ? text[i] : '@';
        c->kind = ACCESS_ABSTRACT;
}

/* Datagrams have no ports that a policy could name. A thread's number is none that a pidfd can be had of, its group's is. */
static bool is_stream(const Audit *a) {
        _cleanup_close_ int pidfd = -EBADF, fd = -EBADF;
        _cleanup_free_ char *status = NULL;
        char place[64];
        int type = 0;
        socklen_t size = sizeof(type);

        (void) snprintf(place, sizeof(place), "/proc/%d/status", (int) a->request->pid);
        const char *group = read_file_full(place, 64 * 1024, &status, NULL) < 0 ? NULL : strstr(status, "\nTgid:");
        if (!group)
                return true;
        pidfd = (int) syscall(SYS_pidfd_open, (pid_t) strtol(group + 6, NULL, 10), 0);
        fd = pidfd < 0 ? -1 : (int) syscall(SYS_pidfd_getfd, pidfd, (int) argument(a, 0), 0);
        return fd < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type == SOCK_STREAM;
}

static void read_address(Audit *a, unsigned operation, uint64_t place, uint64_t place_size, AuditedCall *c) {
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
                struct sockaddr_un un;
                char bytes[128];
        } address = {};
        char host[INET6_ADDRSTRLEN] = "";
        size_t size = (size_t) MIN(place_size & UINT32_MAX, sizeof(address));

        c->operations = operation;
        ssize_t n = read_memory(a, place, &address, size);
        if (n < 0 || (size_t) n != size) {
                failed(c, (int) MIN(n, 0));
                return;
        }
        if (size < sizeof(sa_family_t))
                return;
        c->kind = ACCESS_ADDRESS;
        if (address.any.sa_family == AF_UNIX)
                read_unix(a, &address.un, size, c);
        else if (address.any.sa_family == AF_INET && size >= sizeof(address.in) && address.in.sin_port != 0)
                (void) snprintf(c->address, sizeof(c->address), "%s:%u", inet_ntop(AF_INET, &address.in.sin_addr, host, sizeof(host)),
                                ntohs(address.in.sin_port));
        else if (address.any.sa_family == AF_INET6 && size >= offsetof(struct sockaddr_in6, sin6_scope_id) && address.in6.sin6_port != 0)
                (void) snprintf(c->address, sizeof(c->address), "[%s]:%u", inet_ntop(AF_INET6, &address.in6.sin6_addr, host, sizeof(host)),
                                ntohs(address.in6.sin6_port));
        if (*c->address && c->kind == ACCESS_ADDRESS && operation != ACCESSED_SEND && !is_stream(a)) {
                c->operations = ACCESSED_SEND;
                if (operation == ACCESSED_BIND)
                        *c->address = 0; /* for answers, or nobody but the own loopback */
        }
}

/* The first of them: that a program sends to more than one address at once is rare, and what is not seen of it counts as lost. */
static void read_message(Audit *a, const AuditCall *call, AuditedCall *c) {
        if (!a->target_seen)
                return; /* bailey's own report */
        bool narrow = a->request->data.arch == AUDIT_ARCH_I386 || a->request->data.arch == AUDIT_ARCH_ARM;
        struct {
                uint64_t name;
                uint32_t size;
        } wide = {};
        uint32_t words[2] = {}; /* the same where pointers are of 32 bits */

        ssize_t wanted = narrow ? (ssize_t) sizeof(words) : (ssize_t) offsetof(struct msghdr, msg_iov);
        ssize_t n = read_memory(a, argument(a, call->path), narrow ? (void *) words : (void *) &wide, (size_t) MIN(wanted, (ssize_t) sizeof(wide)));
        if (n < 0) {
                failed(c, (int) n);
                return;
        }
        uint64_t name = narrow ? words[0] : wide.name;
        if (name != 0)
                read_address(a, ACCESSED_SEND, name, narrow ? words[1] : wide.size, c);
        c->unreadable |= name != 0 && call->action == AUDIT_MESSAGES && argument(a, call->flags) > 1;
}

static void read_paths(Audit *a, const AuditCall *call, bool follow, unsigned operations, AuditedCall *c) {
        if (call->flags >= 0 && (argument(a, call->flags) & AT_SYMLINK_NOFOLLOW))
                follow = false;
        (void) resolve_argument(a, c, call->directory, call->path, follow, operations);
        if (call->second_path > 0)
                (void) resolve_argument(a, c, call->second_directory, call->second_path, false, operations);
}

void audit_call_read(Audit *a, const AuditCall *call, AuditedCall *ret) {
        switch (call->action) {
        case AUDIT_LOOK:
        case AUDIT_LOOK_LINK:
                read_paths(a, call, call->action == AUDIT_LOOK, ACCESSED_LOOK, ret);
                break;
        case AUDIT_CHANGE:
        case AUDIT_CHANGE_LINK:
                read_paths(a, call, call->action == AUDIT_CHANGE, call->action == AUDIT_CHANGE ? ACCESSED_WRITE : ACCESSED_ENTRY, ret);
                break;
        case AUDIT_MAKE: {
                AuditedPath *p = resolve_argument(a, ret, call->directory, call->path, false, ACCESSED_LOOK);
                if (p)
                        p->create = true;
                break;
        }
        case AUDIT_OPEN:
        case AUDIT_OPEN_HOW:
                read_open(a, call, ret);
                break;
        case AUDIT_EXECUTE:
                read_execute(a, call, ret);
                break;
        case AUDIT_MAP:
                read_map(a, ret);
                break;
        case AUDIT_MESSAGE:
        case AUDIT_MESSAGES:
                read_message(a, call, ret);
                break;
        case AUDIT_LOST:
                ret->unreadable = true;
                break;
        case AUDIT_CONNECT:
        case AUDIT_BIND:
        case AUDIT_SEND:
        default:
                read_address(a, call->action == AUDIT_BIND ? ACCESSED_BIND : call->action == AUDIT_SEND ? ACCESSED_SEND : ACCESSED_CONNECT,
                             argument(a, call->path), argument(a, call->flags), ret);
        }
}

static void read_command(const Audit *a, char ret[16]) {
        char place[64];

        (void) snprintf(place, sizeof(place), "/proc/%d/comm", (int) a->request->pid);
        _cleanup_close_ int fd = open(place, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret, 15);
        ret[MAX(n, 0)] = 0;
        ret[strcspn(ret, "\n")] = 0;
}

static Access *keep(Audit *a, AccessKind kind, const char *name, unsigned operations) {
        Access *access = access_list_get(&a->trace.accesses, kind, name);
        usec_t now = now_realtime();

        if (!access) {
                a->trace.dropped++;
                return NULL;
        }
        if (access->count++ == 0) {
                access->first = now;
                access->pid = (pid_t) a->request->pid;
                read_command(a, access->command);
        }
        access->last = now;
        access->operations |= operations;
        return access;
}

static void keep_path(Audit *a, const AuditedPath *p) {
        struct stat st;
        int missing = -1;
        unsigned wanted = p->operations, granted = plan_allows(a->plan, p->path);

        if (p->create) {
                missing = stat(p->path, &st) < 0;
                if (missing)
                        wanted = wanted == ACCESSED_LOOK ? ACCESSED_ENTRY : wanted | ACCESSED_ENTRY;
        }
        wanted &= ~granted;
        if (!wanted)
                return;
        if (missing < 0)
                missing = stat(p->path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR);
        Access *access = keep(a, ACCESS_PATH, p->path, wanted);
        if (access && access->count == 1) {
                access->granted = granted;
                access->lossy = !utf8_valid(p->path);
                access->missing = missing > 0;
                access->directory = !missing && S_ISDIR(st.st_mode);
        }
}

/* A link in what is not shown is not there for anybody to follow. To grant it is to grant what it leads to, which must not lose thereby. */
static void keep_links(Audit *a, const AuditedPath *p) {
        const View view = {.read_link = process_read_link, .context = &a->view};
        char target[PATH_MAX];

        for (char **link = p->links; link && *link; link++) {
                struct stat st;
                if (plan_allows(a->plan, *link) & ACCESSED_LOOK)
                        continue;
                if (view_resolve(&view, *link, true, target) < 0)
                        continue;
                Access *access = keep(a, ACCESS_PATH, *link, ACCESSED_LOOK);
                if (!access || access->count > 1)
                        continue;
                access->link = true;
                access->granted = plan_allows(a->plan, target);
                access->lossy = !utf8_valid(*link);
                access->missing = stat(*link, &st) < 0;
                access->directory = !access->missing && S_ISDIR(st.st_mode);
        }
}

void audit_call_done(AuditedCall *c) {
        for (size_t i = 0; i < c->n_paths; i++)
                strv_free(c->paths[i].links);
        c->paths = mfree(c->paths);
        c->n_paths = 0;
}

void audit_call_keep(Audit *a, const AuditedCall *c) {
        a->target_seen |= c->first;
        a->trace.unreadable += c->unreadable;
        for (size_t i = 0; i < c->n_paths; i++) {
                keep_links(a, &c->paths[i]);
                keep_path(a, &c->paths[i]);
        }
        if (*c->address && (c->kind != ACCESS_ADDRESS || !plan_allows_address(a->plan, c->operations, c->address)))
                (void) keep(a, c->kind, c->address, c->operations);
        if (c->first)
                a->view.root = safe_close(a->view.root); /* it was the host's */
}
