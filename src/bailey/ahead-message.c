/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <unistd.h>

#include "bailey/ahead-message.h"
#include "basic/fd.h"
#include "basic/json-reader.h"
#include "basic/parse.h"
#include "basic/text.h"

void ahead_run_done(AheadRun *run) {
        strv_free(run->arguments);
        strv_free(run->environment);
        strv_free(run->names);
        for (size_t i = 0; i < run->n_fds; i++)
                safe_close(run->fds[i]);
        *run = (AheadRun) AHEAD_RUN_NONE;
}

static int take_list(JsonReader *r, char ***ret) {
        int k = json_enter_array(r);

        while (k >= 0 && (k = json_next_element(r)) > 0) {
                char *s;
                k = json_take_string(r, &s);
                if (k >= 0)
                        k = strv_consume(ret, s);
        }
        return k;
}

static int take_version(JsonReader *r, _unused_ AheadRun *run) {
        uint64_t version;
        int k = json_take_u64(r, &version);

        return k < 0 ? k : version == 1 ? 0 : -EBADMSG;
}

static int take_type(JsonReader *r, _unused_ AheadRun *run) {
        _cleanup_free_ char *type = NULL;
        int k = json_take_string(r, &type);

        return k < 0 ? k : streq(type, "run") ? 0 : -EBADMSG;
}

static int take_arguments(JsonReader *r, AheadRun *run) {
        return take_list(r, &run->arguments);
}

static int take_environment(JsonReader *r, AheadRun *run) {
        return take_list(r, &run->environment);
}

static int take_names(JsonReader *r, AheadRun *run) {
        return take_list(r, &run->names);
}

static int take_core(JsonReader *r, AheadRun *run) {
        return json_take_u64(r, &run->core);
}

static int take_file_max(JsonReader *r, AheadRun *run) {
        return json_take_u64(r, &run->file_max);
}

static const struct {
        const char *name;
        int (*take)(JsonReader *r, AheadRun *run);
        bool optional;
} members[] = {
        {"v", take_version, false},
        {"type", take_type, false},
        {"arguments", take_arguments, false},
        {"environment", take_environment, false},
        {"fds", take_names, false},
        {"core", take_core, true},
        {"fileMax", take_file_max, true},
};

static int take_member(JsonReader *r, const char *name, AheadRun *run, unsigned *seen) {
        for (unsigned i = 0; i < ELEMENTSOF(members); i++)
                if (streq(name, members[i].name) && !(*seen & (1U << i))) {
                        *seen |= 1U << i;
                        return members[i].take(r, run);
                }
        return -EBADMSG;
}

int ahead_run_parse(const char *text, size_t size, AheadRun *run) {
        unsigned seen = 0;
        JsonReader reader;

        int r = json_reader_init(&reader, text, size);
        if (r >= 0)
                r = json_enter_object(&reader);
        while (r >= 0) {
                _cleanup_free_ char *name = NULL;
                r = json_next_member(&reader, &name);
                if (r <= 0)
                        break;
                r = take_member(&reader, name, run, &seen);
        }
        if (r >= 0)
                r = json_reader_finish(&reader);
        for (unsigned i = 0; r >= 0 && i < ELEMENTSOF(members); i++)
                if (!members[i].optional && !(seen & (1U << i)))
                        r = -EBADMSG;
        return r < 0 ? r : run->arguments && strv_length(run->names) == run->n_fds ? 0 : -EBADMSG;
}

static int number_of(const char *name, int *ret) {
        static const char *const standard[] = {"stdin", "stdout", "stderr"};

        for (int i = 0; i <= STDERR_FILENO; i++)
                if (streq(name, standard[i])) {
                        *ret = i;
                        return 0;
                }
        if (streq(name, "project")) {
                *ret = AHEAD_PROJECT;
                return 0;
        }
        return parse_fd(name, ret) < 0 || *ret <= STDERR_FILENO || *ret == INT_MAX ? -EBADMSG : 0;
}

int ahead_run_numbers(const AheadRun *run, int numbers[static AHEAD_FDS_MAX], int *ret_least) {
        unsigned found = 0;

        int least = STDERR_FILENO + 1;
        for (size_t i = 0; i < run->n_fds; i++) {
                int r = number_of(run->names[i], &numbers[i]);
                if (r < 0)
                        return r;
                for (size_t k = 0; k < i; k++)
                        if (numbers[k] == numbers[i])
                                return -EBADMSG;
                least = MAX(least, numbers[i] + 1);
                found += numbers[i] <= STDERR_FILENO;
        }
        if (found != STDERR_FILENO + 2) /* these and the project */
                return -EBADMSG;
        *ret_least = least;
        return 0;
}
