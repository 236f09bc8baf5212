/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A configuration looked at as a whole: what is wrong with the file, and what it names that is not there on this host. */

#include "errandd/config.h"

/* What a good file names and this host does not have, or not as it must be: "KEY: …", a sentence each, appended to *list. Files are judged as the account
 * that asks meets them; root's account also asks for the account errand in system mode. credentials_directory as in secret-source.h; where it is NULL,
 * in system mode, what systemd would read is looked for. Asks the account database, and no other host. */
int config_add_findings(const Config *c, ConfigMode mode, const char *credentials_directory, char ***list);

/* The uid of an account by its name, or by its uid in digits; from any thread. */
bool config_find_account(const char *name, uid_t *ret);

/* What this version does not do, in the same form: reasons to refuse a good file. */
int config_add_refusals(const Config *c, char ***list);

typedef struct ConfigCheck {
        char **problems; /* errandd refuses it; then there is nothing else */
        char **findings; /* it takes it, and something will not work */
        char **warnings;
        char **inert;    /* keys that do nothing */
} ConfigCheck;

void config_check_done(ConfigCheck *c);

/* A file to check: its fd, or a negative errno with *ret_problem, a sentence to free. */
int config_check_open(const char *path, char **ret_problem);

/* Sentences "FILE:LINE: KEY: …", or without what is not known. 0 whatever it finds; -ENOMEM. */
int config_check(const char *name, int fd, ConfigMode mode, ConfigCheck *ret);

/* A sentence of these in its parts; text is the rest of it. */
typedef struct ConfigSentence {
        unsigned line; /* 0: none */
        char key[256]; /* empty: none */
        const char *text;
} ConfigSentence;
void config_sentence_parse(const char *name, const char *sentence, ConfigSentence *ret);
