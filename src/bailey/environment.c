/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>

#include "bailey/environment.h"
#include "basic/fd.h"
#include "basic/secret.h"
#include "basic/text.h"

#define EXTRA_SIZE_MAX (1024U * 1024U) /* execve(2) would refuse not much more */

static PolicyVariable *find(Policy *p, const char *name) {
        for (size_t i = 0; i < p->n_variables; i++)
                if (streq(p->variables[i].name, name))
                        return &p->variables[i];
        return NULL;
}

static void drop(PolicyVariable *v) {
        if (v->value)
                secret_wipe(v->value, strlen(v->value));
        free(v->name);
        free(v->value);
        free(v->layer);
}

static void unset(Policy *p, const char *name) {
        PolicyVariable *v = find(p, name);
        if (!v)
                return;
        drop(v);
        *v = p->variables[--p->n_variables];
}

static int set(Policy *p, const char *name, const char *value, const char *layer) {
        unset(p, name);
        PolicyVariable *grown = reallocarray(p->variables, p->n_variables + 1, sizeof(PolicyVariable));
        if (!grown)
                return -ENOMEM;
        p->variables = grown;
        PolicyVariable *v = &grown[p->n_variables++];
        *v = (PolicyVariable){.name = strdup(name), .value = strdup(value), .layer = strdup(layer)};
        return v->name && v->value && v->layer ? 0 : -ENOMEM;
}

static int set_base(Policy *p, const char *shell) {
        const char *const base[][2] = {
                {"HOME", p->home},
                {"LANG", "C.UTF-8"},
                {"LOGNAME", p->account.name},
                {"PATH", "/usr/local/bin:/usr/bin:/bin"},
                {"SHELL", shell ?: "/bin/sh"},
                {"TERM", getenv("TERM")},
                {"TMPDIR", "/tmp"},
                {"USER", p->account.name},
        };

        for (size_t i = 0; i < ELEMENTSOF(base); i++) {
                int r = base[i][1] ? set(p, base[i][0], base[i][1], "base") : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int apply(Policy *p, const Layer *layer) {
        for (size_t i = 0; i < layer->n_variables; i++) {
                const LayerVariable *v = &layer->variables[i];
                const char *value = v->rule == VARIABLE_SET ? v->value : v->rule == VARIABLE_PASS ? getenv(v->name) : NULL;
                int r = 0;

                /* A variable to pass that the caller does not have leaves a lower layer's value alone. */
                if (value)
                        r = set(p, v->name, value, layer->name);
                else if (v->rule == VARIABLE_DENY)
                        unset(p, v->name);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_names(const void *a, const void *b) {
        const PolicyVariable *x = a, *y = b;
        int own = !!startswith(x->name, "BAILEY_") - !!startswith(y->name, "BAILEY_");
        return own ?: strcmp(x->name, y->name);
}

int environment_settle(Policy *p, Layer *const *layers, size_t n_layers, bool brokered, const char *shell, char *const *extra,
                       Findings *findings) {
        size_t first = 0;
        bool reset = false;
        int r = 0;

        for (size_t i = 0; i < n_layers; i++)
                if (layers[i]->reset_environment) {
                        first = i;
                        reset = true;
                }
        if (!reset)
                r = set_base(p, shell);
        for (size_t i = first; i < n_layers && r >= 0; i++)
                r = apply(p, layers[i]);
        for (; extra && *extra && r >= 0; extra++) {
                size_t n = strcspn(*extra, "=");
                _cleanup_free_ char *name = strndup(*extra, n);
                r = name ? set(p, name, *extra + n + 1, "--env-fd") : -ENOMEM;
        }
        if (r >= 0)
                r = set(p, "BAILEY_SANDBOX", "1", "base");
        if (r >= 0 && shell)
                r = set(p, "BAILEY_SANDBOX_DIR", p->working_directory, "base");
        if (r >= 0)
                r = set(p, "BAILEY_SANDBOX_NET", brokered ? "broker" : p->egress_allow || p->n_bind_ports > 0 ? "ports" : "none", "base");
        if (r < 0)
                return r;
        qsort(p->variables, p->n_variables, sizeof(PolicyVariable), compare_names);

        const char *home = policy_variable(p, "HOME");
        if (home && (home[0] != '/' || strlen(home) >= PATH_MAX))
                finding_error(findings, "HOME=%s is not an absolute path; the home is made there inside", home);
        return 0;
}

char **environment_free(char **list) {
        for (char **s = list; s && *s; s++)
                secret_wipe(*s, strlen(*s));
        return strv_free(list);
}

/* Text that names the record, never its value. */
static bool check_record(const char *record, size_t number, char *const *before, Findings *findings) {
        size_t n = strcspn(record, "=");

        if (record[n] != '=' || !variable_name_valid(record, n)) {
                finding_error(findings, "--env-fd: record %zu is not KEY=VALUE with a variable's name", number);
                return false;
        }
        if (startswith(record, "BAILEY_SANDBOX")) {
                finding_error(findings, "--env-fd: record %zu: %.*s is set by bailey itself", number, (int) n, record);
                return false;
        }
        for (; before && *before; before++)
                if (strncmp(*before, record, n + 1) == 0) {
                        finding_error(findings, "--env-fd: record %zu: %.*s is there twice", number, (int) n, record);
                        return false;
                }
        return true;
}

static int split_records(const char *data, size_t size, Findings *findings, char ***ret) {
        char **list = NULL;
        size_t number = 0;
        int r = 0;

        if (size > 0 && data[size - 1] != 0)
                finding_error(findings, "--env-fd: the last record does not end with a NUL");
        for (size_t at = 0; at < size && !findings_failed(findings) && r >= 0; at += strlen(data + at) + 1)
                if (check_record(data + at, ++number, list, findings))
                        r = strv_extend(&list, data + at);
        if (r < 0 || findings_failed(findings)) {
                environment_free(list);
                return r;
        }
        *ret = list;
        return 0;
}

int environment_read_fd(int fd, Findings *findings, char ***ret) {
        _cleanup_free_ char *data = NULL;
        size_t size;

        int r = memfd_read_sealed(fd, EXTRA_SIZE_MAX, &data, &size);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                finding_error(findings, "--env-fd %d: %s", fd, r == -EINVAL ? "not a memfd sealed against shrinking, growing and writing"
                                                               : r == -E2BIG ? "larger than 1 MiB" : "cannot be read");
                return 0;
        }
        r = split_records(data, size, findings, ret);
        secret_wipe(data, size);
        return r;
}
