/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A directory tree of its own for tests of policies: T/program, T/data, T/config, T/real (the real home), T/p.toml. */

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/layers.h"
#include "basic/io.h"
#include "basic/text.h"
#include "test.h"

static char fixture[64];
static Findings findings;

static char *at(const char *rel) {
        /* A few live at once; tests are short-lived. */
        static char buffers[8][4200];
        static unsigned next;
        char *b = buffers[next++ % 8];
        (void) snprintf(b, sizeof(buffers[0]), "%s/%s", fixture, rel);
        return b;
}

static _unused_ void make_directory(const char *rel) {
        char *path = at(rel);
        for (char *p = path + strlen(fixture) + 1; *p; p++)
                if (*p == '/') {
                        *p = 0;
                        (void) mkdir(path, 0755);
                        *p = '/';
                }
        (void) mkdir(path, 0755);
}

static _unused_ void make_file(const char *rel, const char *text, mode_t mode) {
        int fd = open(at(rel), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
        CHECK(fd >= 0 && write_all(fd, text, strlen(text)) == 0);
        close(fd);
}

static _unused_ void make_link(const char *text, const char *rel) {
        (void) unlink(at(rel));
        CHECK_INT(symlink(text, at(rel)), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        (void) st;
        (void) type;
        (void) ftw;
        return remove(path);
}

static void fixture_done(void) {
        if (*fixture)
                (void) nftw(fixture, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void fixture_make(void) {
        char path[] = "/tmp/bailey-test-XXXXXX";

        CHECK(mkdtemp(path));
        char *real = realpath(path, NULL);
        CHECK(real);
        (void) snprintf(fixture, sizeof(fixture), "%s", real);
        free(real);
        atexit(fixture_done);
        make_directory("data");
        make_directory("config");
        make_directory("real");
        make_file("program", "#!/bin/sh\n", 0755);
        CHECK(setenv("XDG_DATA_HOME", at("data"), 1) == 0 && setenv("XDG_CONFIG_HOME", at("config"), 1) == 0 &&
              setenv("HOME", at("real"), 1) == 0 && chdir(fixture) == 0);
}

/* The policy under T/p.toml with that text, or NULL and `findings`. */
static Policy *resolve_with(const char *text, const PolicyRequest *more) {
        Account account = {.uid = 1000, .gid = 1000, .name = (char *) "you", .home = at("real"), .group_name = (char *) "you"};
        PolicyRequest request = more ? *more : (PolicyRequest){};
        Policy *policy = NULL;

        findings_done(&findings);
        findings = (Findings){};
        if (text)
                make_file("p.toml", text, 0644);
        request.account = &account;
        request.target = request.target ?: at("program");
        request.config = text ? at("p.toml") : NULL;
        CHECK_INT(policy_resolve(&request, &findings, &policy), 0);
        return policy;
}

static _unused_ Policy *resolve(const char *text) {
        return resolve_with(text, NULL);
}

/* Some error, or warning, holds that text. */
static _unused_ bool listed(char *const *list, const char *text) {
        for (char *const *s = list; s && *s; s++)
                if (strstr(*s, text))
                        return true;
        for (char *const *s = list; s && *s; s++)
                printf("# not it: %s\n", *s);
        return false;
}
