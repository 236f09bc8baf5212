/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What changes in a session and has to outlive the process: a text in memory that the service manager keeps too. There is room for two; the older is
 * written over, its checksum last, so that a process killed at any moment leaves a whole one. */

#include "basic/macro.h"

#define STATE_TEXT_MAX (512U * 1024U) /* GRANTS_MAX grants of the longest names */

typedef struct StateFile StateFile;

int state_file_new(StateFile **ret);
/* fd is taken always. The file must be of our own making: sealed against another size. -EBADMSG with *ret_problem, static, when it is not or when
 * neither text is whole; *ret_text is the newest, NUL-terminated, to free. */
int state_file_open(int fd, StateFile **ret, char **ret_text, size_t *ret_size, const char **ret_problem);
StateFile *state_file_free(StateFile *f);
DEFINE_CLEANUP(StateFile *, state_file_free);

int state_file_fd(const StateFile *f);

/* -E2BIG over STATE_TEXT_MAX. When it fails what was written before is still there. */
int state_file_write(StateFile *f, const char *text, size_t size);

/* Numbers beside the text that cost one small write each; 0 at first. index is below STATE_COUNTS. */
#define STATE_COUNTS 64U
int state_file_set_count(StateFile *f, size_t index, uint64_t count);
uint64_t state_file_count(const StateFile *f, size_t index);
