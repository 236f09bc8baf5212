/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/config-check.h"
#include "errandd/config-load.h"
#include "shared/json-check.h"
#include "shared/message.h"

/* The file was found good: whether the key is written in it is all that is asked here. */
static bool asks_for_enforcement(int fd) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonObject *o, *sandbox;
        JsonProblem problem;
        char *text = NULL;
        bool value = false;
        size_t size;

        if (lseek(fd, 0, SEEK_SET) < 0 || read_fd_full(fd, CONFIG_SIZE_MAX, &text, &size) < 0)
                return true;
        if (json_read_object(text, size, CONFIG_DEPTH_MAX, &parser, &o, &problem) >= 0 && json_get_object(o, "sandbox", &sandbox) >= 0)
                (void) json_get_bool(sandbox, "requireFullEnforcement", &value);
        secret_wipe(text, size);
        free(text);
        return value;
}

static int refuse(Fault *f, char *const *problems) {
        _cleanup_free_ char *text = strv_join(problems, "\n");
        return fault_set(f, ERROR_CONFIGURATION, "%s", text ?: "the configuration is refused");
}

/* What the mode says of a good configuration, and what of it this host does not have. */
static int settle(const Paths *paths, bool enforce, Config *c, Fault *f) {
        ConfigMode mode = paths->mode->config;
        _cleanup_strv_free_ char **refusals = NULL;

        int r = config_add_refusals(c, &refusals);
        for (char **s = refusals; s && *s; s++) {
                char *longer;
                if (asprintf(&longer, "%s: %s", paths->config ?: "the configuration", *s) < 0)
                        return fault_set(f, ERROR_CONFIGURATION, "out of memory");
                free(*s);
                *s = longer;
        }
        if (r >= 0 && refusals)
                return refuse(f, refusals);
        if (paths->state_fd >= 0 && mode != CONFIG_EMBEDDED && !streq_ptr(c->state_dir, paths->state_named))
                return fault_set(f, ERROR_CONFIGURATION, "%s: stateDir: what runs is in %s; restart errandd to move to another, without sessions", paths->config ?: "",
                                 paths->state);
        if (mode == CONFIG_EMBEDDED)
                c->sandbox.require_full_enforcement = enforce;
        if (r >= 0)
                r = config_add_findings(c, mode, getenv("CREDENTIALS_DIRECTORY"), &c->warnings);
        return r < 0 ? fault_set(f, ERROR_CONFIGURATION, "out of memory") : 0;
}

/* Looked up here, where it may take its time. One that is not there has been told. */
static int find_operators(Config *c) {
        for (char *const *name = c->operators; name && *name; name++) {
                char number[16];
                uid_t uid;

                if (!config_find_account(*name, &uid))
                        continue;
                (void) snprintf(number, sizeof(number), "%u", uid);
                if (strv_extend(&c->operator_uids, number) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int config_load(const Paths *paths, atomic_uint *stage, Config **ret, Fault *f) {
        ConfigMode mode = paths->mode->config;
        _cleanup_(config_freep) Config *c = NULL;
        _cleanup_strv_free_ char **problems = NULL;
        bool enforce = false;
        int r;

        if (paths->config) {
                _cleanup_close_ int fd = open(paths->config, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
                if (fd < 0)
                        return fault_set(f, ERROR_CONFIGURATION, "%s: cannot be read: %s", paths->config, strerror(errno));
                r = config_read_fd(paths->config, fd, mode, &c, &problems);
                enforce = r >= 0 && asks_for_enforcement(fd);
        } else
                r = config_new(mode, &c);
        if (r == -EBADMSG)
                return refuse(f, problems);
        if (r < 0)
                return fault_set(f, ERROR_CONFIGURATION, "the configuration cannot be read: %s", strerror(-r));
        if (stage)
                atomic_store(stage, CONFIG_STAGE_HOST);
        r = settle(paths, enforce, c, f);
        if (r >= 0 && find_operators(c) < 0)
                r = fault_set(f, ERROR_CONFIGURATION, "out of memory");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}
