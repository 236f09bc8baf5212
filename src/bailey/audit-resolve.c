/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "bailey/audit-resolve.h"
#include "bailey/resolve.h"
#include "basic/text.h"

static void step_up(char *done, size_t *length) {
        while (*length > 0 && done[--*length] != '/')
                ;
        done[*length] = 0;
}

int view_resolve(const View *view, const char *path, bool follow, char ret[PATH_MAX]) {
        char done[PATH_MAX] = "", rest[2 * PATH_MAX], text[PATH_MAX], longer[2 * PATH_MAX];
        size_t length = 0;
        unsigned links = 0;

        if (snprintf(rest, sizeof(rest), "%s", path) >= PATH_MAX)
                return -ENAMETOOLONG;
        for (const char *p = rest;;) {
                p += strspn(p, "/");
                size_t n = strcspn(p, "/");
                if (n == 0)
                        break;
                const char *name = p;
                p += n;
                if (n == 1 && name[0] == '.')
                        continue;
                if (n == 2 && name[0] == '.' && name[1] == '.') {
                        step_up(done, &length);
                        continue;
                }
                if (length + 1 + n >= PATH_MAX)
                        return -ENAMETOOLONG;
                done[length] = '/';
                memcpy(done + length + 1, name, n);
                done[length + 1 + n] = 0;

                ssize_t k = *p == 0 && !follow ? -EINVAL : view->read_link(view->context, done, text, sizeof(text) - 1);
                if (k <= 0) {
                        length += 1 + n;
                        continue;
                }
                text[k] = 0;
                if (view->followed)
                        view->followed(view->context, done);
                if (++links > RESOLVE_LINKS_MAX)
                        return -ELOOP;
                if (snprintf(longer, sizeof(longer), "%s/%s", text, p) >= (int) sizeof(rest))
                        return -ENAMETOOLONG;
                /* A link's own end is followed; a slash that was added for nothing must not be what asks for that. */
                if (*p == 0)
                        longer[k] = 0;
                memcpy(rest, longer, strlen(longer) + 1);
                length = text[0] == '/' ? 0 : length;
                done[length] = 0;
                p = rest;
        }
        memcpy(ret, length > 0 ? done : "/", length > 0 ? length + 1 : 2);
        return 0;
}

/* The links that the kernel makes for whoever looks: they say something else to us than to the process. NULL: none of them. */
static const char *own_place(const char *path) {
        static const char *const prefixes[] = {"/proc/self/", "/proc/thread-self/"};

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++) {
                const char *rest = startswith(path, prefixes[i]);
                if (rest)
                        return rest;
        }
        return NULL;
}

ssize_t process_read_link(void *context, const char *path, char *ret, size_t size) {
        const ProcessView *v = context;
        const char *own = own_place(path);
        char place[64 + NAME_MAX];
        ssize_t n;

        if (own) {
                const char *last = startswith(own, "fd/") ?: own;
                if (strlen(own) > NAME_MAX || strchr(last, '/'))
                        return -EINVAL;
                (void) snprintf(place, sizeof(place), "/proc/%d/%s", (int) v->thread, own);
                n = readlink(place, ret, size);
                /* Pipes and sockets have no place to go on from. */
                return n < 0 ? -errno : ret[0] == '/' ? n : -EINVAL;
        }
        if (streq(path, "/proc/self") || streq(path, "/proc/thread-self"))
                return -EINVAL;
        n = readlinkat(v->root, path + 1, ret, size);
        return n < 0 ? -errno : n;
}

void process_followed(void *context, const char *path) {
        ProcessView *v = context;

        (void) strv_extend(&v->links, path); /* as many as RESOLVE_LINKS_MAX; the path itself says the rest */
}
