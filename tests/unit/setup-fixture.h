/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Set-up messages for the tests of their parser: taken with what comes of them, or refused with a sentence. */

#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "broker/setup.h"
#include "test.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define CREDENTIAL "errand-session-credential"
#define KEY "sk-real-key-0123456789"
#define STAND_IN "errand-session-stand-in"
#define IDENTITY "\"v\":1,\"type\":\"setup\",\"session\":\"s1\",\"token\":\"" TOKEN "\""
#define KEYS "{\"credential\":\"" CREDENTIAL "\"}"
#define KEYS_P "{\"credential\":\"" CREDENTIAL "\",\"providers\":{\"p\":{\"key\":\"" KEY "\",\"standIn\":\"" STAND_IN "\"}}}"

static inline int sealed(const char *data, size_t size) {
        int fd = memfd_new_sealed("keys", data, size);
        CHECK(fd >= 0);
        return fd;
}

static inline int file(const char *content, int flags) {
        char path[] = "/tmp/test-setup-XXXXXX";
        _cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
        CHECK(fd >= 0 && write_all(fd, content, strlen(content)) == 0);
        int again = open(path, flags | O_CLOEXEC);
        CHECK_INT(unlink(path), 0);
        CHECK(again >= 0);
        return again;
}

/* Parses message text with fds; all fds are gone after it, but for those a Setup holds. */
static inline int parse_fds(const char *text, const int *fds, size_t n_fds, Setup **ret, char **ret_problem) {
        _cleanup_(message_freep) Message *m = NULL;

        int r = message_parse(text, strlen(text), fds, n_fds, &m, ret_problem);
        if (r < 0)
                test_fail(__FILE__, __LINE__, "%s is not even a message: %s", text, *ret_problem);
        *ret_problem = NULL;
        r = setup_parse(m, ret, ret_problem);
        CHECK(r == 0 || r == -EBADMSG);
        CHECK((r < 0) == (*ret_problem != NULL));
        return r;
}

static inline Setup *parse_good(const char *text, const char *keys) {
        char *problem = NULL;
        int fd = sealed(keys, strlen(keys));
        Setup *s = NULL;

        if (parse_fds(text, &fd, 1, &s, &problem) < 0)
                test_fail(__FILE__, __LINE__, "%s was refused: %s", text, problem);
        return s;
}

/* Refused, with a sentence that has this in it, and no secret. */
static inline void refused_with(const char *text, const char *keys, const char *says) {
        _cleanup_free_ char *problem = NULL;
        int fd = sealed(keys, strlen(keys));
        Setup *s = NULL;

        if (parse_fds(text, &fd, 1, &s, &problem) >= 0)
                test_fail(__FILE__, __LINE__, "%s with %s was taken", text, keys);
        if (!strstr(problem, says))
                test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", problem, says);
        CHECK(!strstr(problem, TOKEN) && !strstr(problem, CREDENTIAL) && !strstr(problem, "sk-real") && !strstr(problem, STAND_IN));
        CHECK(!s);
}

#define URL "\"baseUrl\":\"https://a.example\""
#define NAME "\"credentialName\":\"A_KEY\""
#define PLACE "\"placement\":\"bearer\""
