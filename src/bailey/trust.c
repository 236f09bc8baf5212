/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "bailey/account.h"
#include "bailey/describe.h"
#include "bailey/directories.h"
#include "bailey/discovery.h"
#include "bailey/policy-source.h"
#include "bailey/resolve.h"
#include "bailey/trust-store.h"
#include "bailey/trust.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/path.h"
#include "basic/text.h"

/* Where a file stands: its directory without links, and its own name, link or not. That is how it is found, too. */
static int place(const char *file, char **ret_directory, char **ret_name) {
        _cleanup_(resolved_path_done) ResolvedPath to = {};
        _cleanup_free_ char *path = NULL, *parent = NULL;

        int r = path_make_absolute(file, &path);
        if (r < 0)
                return r;
        parent = path_parent(path);
        if (!parent)
                return -ENOMEM;
        r = path_resolve(parent, &to);
        if (r < 0)
                return r;
        char *name = strdup(strrchr(path, '/') + 1);
        if (!name)
                return -ENOMEM;
        *ret_directory = TAKE_PTR(to.real);
        *ret_name = name;
        return 0;
}

static int fail_store(int r, const char *config, const char *problem) {
        if (problem)
                log_error("%s", problem);
        else
                log_error_errno(r, "%s/" TRUST_STORE_NAME ": %m", config);
        return EXIT_FAILURE;
}

/* Yes, and nothing else, is yes. */
static bool ask(const char *path) {
        char answer[16];
        size_t n = 0;

        fprintf(stderr, "Accept %s as it is now? [y/N] ", path);
        (void) fflush(stderr);
        while (n < sizeof(answer) - 1 && read(STDIN_FILENO, answer + n, 1) == 1 && answer[n] != '\n')
                n++;
        answer[n] = 0;
        return streq(answer, "y") || streq(answer, "Y") || streq(answer, "yes");
}

/* Opens, checks, reads and parses once: what is shown is what is accepted. */
static int read_policy(const Account *account, const char *file, PolicySource *source, Layer **ret) {
        _cleanup_free_ char *directory = NULL, *name = NULL, *cwd = getcwd(NULL, 0);
        _cleanup_(findings_done) Findings findings = {};
        const char *home = directory_home(account), *reason = NULL;
        const PolicyPlaces places = {.home = streq(home, "/") ? NULL : home, .working_directory = cwd, .environment = !account->changed};

        int r = place(file, &directory, &name);
        if (r < 0)
                return log_error_errno(r, "%s: %m", file);
        if (!streq(name, DISCOVERY_NAME)) {
                log_error("%s: only files named " DISCOVERY_NAME " are found by walking and have to be accepted; another one is named "
                          "with --config", file);
                return -EINVAL;
        }
        r = policy_source_open_found(directory, cwd && streq(cwd, directory), name, source);
        if (r < 0)
                return log_error_errno(r, "%s: %m", file);
        if (!S_ISREG(source->status.st_mode)) {
                log_error("%s is not a regular file", file);
                return -EINVAL;
        }
        if (!policy_source_is_own(&source->status, account, &reason)) {
                log_error("%s cannot be accepted: %s", source->path, reason);
                return -EPERM;
        }
        r = policy_source_read(source);
        if (r < 0)
                return log_error_errno(r, "%s: %m", source->path);
        r = policy_source_parse(source, NULL, POLICY_FILE, &places, &findings, ret);
        findings_print(&findings);
        return r < 0 ? r : *ret ? 0 : -EBADMSG;
}

static int accept_file(const Options *o, const Account *account, const char *config) {
        _cleanup_(policy_source_done) PolicySource source = POLICY_SOURCE_NONE;
        _cleanup_(layer_freep) Layer *layer = NULL;
        _cleanup_free_ char *clean = NULL, *problem = NULL;
        uint8_t digest[SHA256_SIZE];

        int r = read_policy(account, o->argv[0], &source, &layer);
        if (r < 0)
                return EXIT_FAILURE;
        clean = string_escape_control(source.path);
        if (!clean)
                return log_oom(), EXIT_FAILURE;
        printf("%s grants:\n", clean);
        if (describe_layer(layer, stdout) < 0 || fflush(stdout) != 0)
                return log_error("Failed to print what it grants"), EXIT_FAILURE;
        if (!o->yes && !isatty(STDIN_FILENO)) {
                log_error("%s is not accepted: there is no terminal to ask on; look at the file, then give --yes", source.path);
                return EXIT_FAILURE;
        }
        if (!o->yes && !ask(clean)) {
                log_error("%s is not accepted", source.path);
                return EXIT_FAILURE;
        }
        sha256(source.text, source.size, digest);
        r = trust_store_change(config, account->uid, source.path, digest, &problem);
        if (r < 0)
                return fail_store(r, config, problem);
        printf("accepted %s\n", clean);
        return EXIT_SUCCESS;
}

/* What a run would make of an entry now. */
static const char *entry_state(const TrustEntry *entry) {
        _cleanup_(policy_source_done) PolicySource source = POLICY_SOURCE_NONE;
        _cleanup_free_ char *directory = path_parent(entry->path);
        uint8_t digest[SHA256_SIZE];

        if (!directory || policy_source_open_found(directory, false, strrchr(entry->path, '/') + 1, &source) < 0)
                return "gone";
        if (!S_ISREG(source.status.st_mode) || policy_source_read(&source) < 0)
                return "changed";
        sha256(source.text, source.size, digest);
        return memcmp(digest, entry->digest, SHA256_SIZE) == 0 ? "accepted" : "changed";
}

static int print_list(const TrustStore *store) {
        for (size_t i = 0; i < store->n; i++) {
                char digest[2 * SHA256_SIZE + 1];
                _cleanup_free_ char *clean = string_escape_control(store->entries[i].path);

                if (!clean)
                        return -ENOMEM;
                sha256_to_string(store->entries[i].digest, digest);
                printf("%-8s  %s  %s\n", entry_state(&store->entries[i]), digest, clean);
        }
        return 0;
}

static int print_list_json(const TrustStore *store) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        json_open_array(&w, NULL);
        for (size_t i = 0; i < store->n; i++) {
                char digest[2 * SHA256_SIZE + 1];

                sha256_to_string(store->entries[i].digest, digest);
                json_open_object(&w, NULL);
                json_add_string(&w, "path", store->entries[i].path);
                json_add_string(&w, "sha256", digest);
                json_add_string(&w, "state", entry_state(&store->entries[i]));
                json_close_object(&w);
        }
        json_close_array(&w);
        return json_writer_print(&w, stdout);
}

static int list_files(const Options *o, const Account *account, const char *config) {
        _cleanup_(trust_store_freep) TrustStore *store = NULL;
        _cleanup_free_ char *problem = NULL;

        int r = trust_store_load(config, account->uid, &store, &problem);
        if (r < 0)
                return fail_store(r, config, problem);
        r = o->json ? print_list_json(store) : print_list(store);
        if (r < 0 || fflush(stdout) != 0)
                return log_error("Failed to print the list"), EXIT_FAILURE;
        return EXIT_SUCCESS;
}

/* By the path at which it was accepted, whatever is there now, or by its digest. */
static int revoke_file(const char *file, const Account *account, const char *config) {
        _cleanup_free_ char *directory = NULL, *name = NULL, *path = NULL, *problem = NULL;
        uint8_t digest[SHA256_SIZE];
        int r;

        if (sha256_from_string(file, strlen(file), digest) >= 0)
                r = trust_store_forget(config, account->uid, digest, &problem);
        else {
                r = place(file, &directory, &name);
                if (r < 0)
                        return log_error_errno(r, "%s: %m", file), EXIT_FAILURE;
                if (asprintf(&path, "%s/%s", streq(directory, "/") ? "" : directory, name) < 0)
                        return log_oom(), EXIT_FAILURE;
                r = trust_store_change(config, account->uid, path, NULL, &problem);
        }
        if (r < 0)
                return fail_store(r, config, problem);
        if (r == 0) {
                log_error("%s was not accepted; see bailey trust --list", path ?: file);
                return EXIT_FAILURE;
        }
        _cleanup_free_ char *clean = string_escape_control(path ?: file);
        printf("taken back: %s\n", clean ?: "");
        return EXIT_SUCCESS;
}

int trust_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_free_ char *config = NULL;

        if (account_settle(o->user, &account) < 0)
                return EXIT_FAILURE;
        if (directory_config(&account, &config) < 0)
                return log_error("The directory of the configuration cannot be named"), EXIT_FAILURE;
        if (o->list)
                return list_files(o, &account, config);
        return o->revoke ? revoke_file(o->argv[0], &account, config) : accept_file(o, &account, config);
}
