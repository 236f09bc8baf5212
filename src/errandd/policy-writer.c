/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/path.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "errandd/policy-writer.h"

/* What a program of the host needs to start, and nothing of a person's. */
static const char *const floor_execute[] = {"/bin", "/lib", "/lib64", "/sbin", "/usr"};
static const char *const floor_read[] = {"/etc", "/proc", "/sys"};

/* What is here belongs to root, whom a session's user namespace has no name for, and ssh ends over a file in it that belongs to a stranger:
 * Debian 13 has one. Without them it goes on. */
static const char ssh_snippets[] = "/etc/ssh/ssh_config.d";

typedef struct Writer {
        FILE *file;
        const char *bad; /* the first path that cannot be written */
} Writer;

/* A basic string of TOML 1.0: quotation mark, backslash and controls are escaped, DEL among them. */
static void put_string(Writer *w, const char *s) {
        const unsigned char *p = (const unsigned char *) s, *end = p + strlen(s);

        fputc('"', w->file);
        while (p < end) {
                size_t n = utf8_sequence(p, (size_t) (end - p));
                if (n == 0) {
                        if (!w->bad)
                                w->bad = s;
                        break;
                }
                if (*p < 0x20 || *p == 0x7f)
                        fprintf(w->file, "\\u%04X", *p);
                else if (*p == '"' || *p == '\\')
                        fprintf(w->file, "\\%c", *p);
                else
                        fwrite(p, 1, n, w->file);
                p += n;
        }
        fputc('"', w->file);
}

static void put_item(Writer *w, bool *first, const char *path) {
        fputs(*first ? "" : ", ", w->file);
        *first = false;
        put_string(w, path);
}

/* One key; a floor's path that this host does not have would only be warned about. project and program may be NULL. */
static void put_list(Writer *w, const char *key, const char *const *floor, size_t n_floor, const char *project, const char *program,
                     char *const *extra) {
        bool first = true;

        fprintf(w->file, "%s = [", key);
        for (size_t i = 0; i < n_floor; i++)
                if (access(floor[i], F_OK) >= 0)
                        put_item(w, &first, floor[i]);
        if (project)
                put_item(w, &first, project);
        if (program)
                put_item(w, &first, program);
        for (; extra && *extra; extra++)
                put_item(w, &first, *extra);
        fputs("]\n", w->file);
}

/* The floor has it with the rest of /etc; and where sessions run as the account that errandd has, they could read the keys in it. */
static const char own_configuration[] = POLICY_OWN_CONFIGURATION;

/* What a person grants there is that person's decision; and to grant and to deny one path is an error. */
static bool is_granted(const ConfigSandbox *s, const char *path) {
        char *const *const lists[] = {s->policy_extra.read, s->policy_extra.write, s->policy_extra.execute};

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                for (char *const *p = lists[i]; p && *p; p++)
                        if (path_beneath(*p, path))
                                return true;
        return false;
}

bool policy_floor_executes(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(floor_execute); i++)
                if (path_beneath(path, floor_execute[i]))
                        return true;
        return false;
}

static bool floor_shows(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(floor_read); i++)
                if (path_beneath(path, floor_read[i]))
                        return true;
        return policy_floor_executes(path);
}

/* Nothing but the floor leads to what is hidden: no session starts whose project or policyExtra does. */
static void put_deny(Writer *w, const PolicyInput *in) {
        bool first = true, own = access(own_configuration, F_OK) >= 0;

        fputs("deny = [", w->file);
        if (own)
                put_item(w, &first, own_configuration);
        if (access(ssh_snippets, F_OK) >= 0 && !is_granted(in->sandbox, ssh_snippets))
                put_item(w, &first, ssh_snippets);
        for (char *const *path = in->hidden; path && *path; path++)
                if (floor_shows(*path) && !(own && path_beneath(*path, own_configuration)))
                        put_item(w, &first, *path);
        fputs("]\n", w->file);
}

/* A broker's listener is not egress: it lies inside. */
static void put_egress(Writer *w, const PolicyInput *in) {
        const ConfigSandbox *s = in->sandbox;

        if (!in->open || s->n_ports == 0) {
                fputs("egress = \"deny\"\n", w->file);
                return;
        }
        fputs("egress_allow = [", w->file);
        for (size_t i = 0; i < s->n_ports; i++)
                fprintf(w->file, "%s\"%u\"", i > 0 ? ", " : "", s->ports[i]);
        fputs("]\n", w->file);
}

static void put_policy(Writer *w, const PolicyInput *in) {
        const ConfigSandbox *s = in->sandbox;

        fprintf(w->file, "# What session %s is granted. errandd writes this at each start; it reads nothing back.\n\n[filesystem]\nreset = true\n",
                in->session);
        put_list(w, "read", floor_read, ELEMENTSOF(floor_read), in->project, NULL, s->policy_extra.read);
        put_list(w, "write", NULL, 0, in->project, NULL, s->policy_extra.write);
        put_list(w, "execute", floor_execute, ELEMENTSOF(floor_execute), in->project,
                 in->connect && !policy_floor_executes(in->connect) ? in->connect : NULL, s->policy_extra.execute);
        put_deny(w, in);
        fputs("\n[network]\nreset = true\n", w->file);
        put_egress(w, in);
        fputs("\n[env]\npass = []\n\n[resources]\n", w->file);
        fprintf(w->file, "tmp_size = \"%llu\"\nshm_size = \"%llu\"\n", (unsigned long long) s->tmp_size, (unsigned long long) s->shm_size);
}

int policy_format(const PolicyInput *in, char **ret, char **ret_problem) {
        _cleanup_free_ char *text = NULL, *shown = NULL;
        Writer w = {};
        size_t size;

        w.file = open_memstream(&text, &size);
        if (!w.file)
                return -ENOMEM;
        put_policy(&w, in);
        bool failed = ferror(w.file);
        if (fclose(w.file) != 0 || failed)
                return -ENOMEM;
        if (!w.bad) {
                *ret = TAKE_PTR(text);
                return 0;
        }
        shown = string_escape_control(w.bad);
        if (!shown || asprintf(ret_problem, "the path %s is not UTF-8, and a policy cannot name it; rename it", shown) < 0)
                return -ENOMEM;
        return -EBADMSG;
}
