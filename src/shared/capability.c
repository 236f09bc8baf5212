/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/json-writer.h"
#include "basic/text.h"
#include "shared/capability.h"
#include "shared/scrub.h"

void capability_done(Capability *c) {
        free(c->method);
        free(c->path);
        *c = (Capability) {};
}

void capabilities_free(Capability *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                capability_done(&list[i]);
        free(list);
}

const char *capability_method_problem(const char *method) {
        size_t n = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");

        if (streq(method, "*") || (n > 0 && n <= CAPABILITY_METHOD_MAX && !method[n]))
                return NULL;
        return "is neither a method in upper case nor \"*\"";
}

const char *capability_path_problem(const char *path) {
        if (path[0] != '/')
                return "does not begin with '/'";
        if (strlen(path) > CAPABILITY_PATH_MAX)
                return "is longer than 1024 bytes";
        for (const char *p = path; *p; p++)
                if (*p <= 0x20 || *p >= 0x7f || strchr("?#;\\", *p))
                        return "holds a character that no matched path has (a path ends before its query)";
        for (const char *p = path; *p;) {
                size_t n = strcspn(++p, "/");
                if (n == 0 && path[1])
                        return "has an empty segment";
                if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return "has a . or .. segment";
                if (memchr(p, '*', n) && !(p[0] == '*' && (n == 1 || (n == 2 && p[1] == '*'))))
                        return "has a '*' beside other characters in one segment: it stands alone";
                p += n;
        }
        return NULL;
}

/* The segment at s, which stands on a '/' or at the end: false at the end. *ret_next is where the one after it begins. */
static bool segment(const char *s, const char *end, const char **ret, size_t *ret_size, const char **ret_next) {
        if (s >= end)
                return false;
        const char *from = s + 1, *slash = memchr(from, '/', (size_t) (end - from));

        *ret = from;
        *ret_next = slash ?: end;
        *ret_size = (size_t) (*ret_next - from);
        return true;
}

/* The root has no segment. */
static const char *skip_root(const char *s, const char *end) {
        return end - s == 1 && *s == '/' ? end : s;
}

/* Both walk by segments; of several "**" only the last needs to be tried again, so the time is bounded by the product of the lengths. */
static bool path_covers(const char *pattern, const char *pattern_end, const char *path, const char *path_end) {
        const char *again_pattern = NULL, *again_path = NULL;

        for (;;) {
                const char *p, *p_next, *s, *s_next;
                size_t p_size = 0, s_size = 0;
                bool more = segment(pattern, pattern_end, &p, &p_size, &p_next);
                bool left = segment(path, path_end, &s, &s_size, &s_next);

                if (more && p_size == 2 && p[0] == '*' && p[1] == '*') {
                        again_pattern = pattern = p_next;
                        again_path = path;
                } else if (more && left && ((p_size == 1 && p[0] == '*' && s_size > 0) || (p_size == s_size && memcmp(p, s, s_size) == 0))) {
                        pattern = p_next;
                        path = s_next;
                } else if (!more && !left)
                        return true;
                else if (again_pattern && segment(again_path, path_end, &s, &s_size, &s_next)) {
                        pattern = again_pattern;
                        path = again_path = s_next;
                } else
                        return false;
        }
}

bool capability_covers(const Capability *c, const char *method, size_t method_size, const char *path, size_t path_size) {
        const char *query = path_size > 0 ? memchr(path, '?', path_size) : NULL;
        const char *end = query ?: path + path_size;

        if (!streq(c->method, "*") && (strlen(c->method) != method_size || memcmp(c->method, method, method_size) != 0))
                return false;
        if (path < end && *path != '/')
                return false;
        const char *pattern_end = c->path + strlen(c->path);
        return path_covers(skip_root(c->path, pattern_end), pattern_end, skip_root(path, end), end);
}

bool capabilities_cover(const Capability *list, size_t n, const char *method, size_t method_size, const char *path, size_t path_size) {
        for (size_t i = 0; i < n; i++)
                if (capability_covers(&list[i], method, method_size, path, path_size))
                        return true;
        return false;
}

int capability_entry(const char *method, const char *path, size_t path_size, char **ret) {
        const char *query = path_size > 0 ? memchr(path, '?', path_size) : NULL, *end = query ?: path + path_size;
        _cleanup_(json_writer_done) JsonWriter w = {};
        char text[CAPABILITY_PATH_MAX + 1];
        const char *s = NULL, *next = skip_root(path, end);
        size_t n = 0, size = 0, unused;

        while (segment(next, end, &s, &size, &next)) {
                bool spelled = !memchr(s, '*', size) && !memmem(s, size, SCRUB_REPLACEMENT, STRLEN(SCRUB_REPLACEMENT));
                if (n + 1 + (spelled ? size : 1) + STRLEN("/**") > CAPABILITY_PATH_MAX) {
                        memcpy(text + n, "/**", STRLEN("/**"));
                        n += STRLEN("/**");
                        break;
                }
                text[n++] = '/';
                memcpy(text + n, spelled ? s : "*", spelled ? size : 1);
                n += spelled ? size : 1;
        }
        json_open_object(&w, NULL);
        json_add_string(&w, "method", method ?: "*");
        json_add_string_n(&w, "path", n > 0 ? text : "/", n > 0 ? n : 1);
        json_close_object(&w);
        return json_writer_finish(&w, ret, &unused);
}
