/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Records on disk: STATEDIR/.records/ID/, for errandd's account alone. One writer per file. Files that errandd writes are replaced whole;
 * files that others write are opened here, append-only, and only their fd is given away. Names are single components, always below an open
 * directory, and never followed.
 *
 * A file is replaced in one of two ways. record_replace_file() comes back when the new text is on disk, and sleeps until then. Or it goes
 * through two steps: record_write_ahead() puts the new text beside the file, where whoever reads next finds it, also after a kill at any moment;
 * record_settle() has it written to the disk, and only then puts it in the file's place. So what bears the file's name is always on disk and
 * whole, what is ahead of it is newer where it is whole, and may be torn only by a loss of power. */

#include "shared/session-id.h"

#define RECORD_DESCRIPTION_NAME "session.json" /* what the session is; a directory without it is no record */
#define RECORD_FILE_MAX (1024U * 1024U) /* 1024 grants of the longest hosts are half of it */

/* Opens STATEDIR/.records (0700), making it if need be. The fd, or a negative errno: -EPERM when it is another account's or open to others. */
int record_root_open(int state_dir);

/* An id that no session will have by chance. */
int record_mint_id(char ret[static SESSION_ID_MAX + 1]);
/* Makes a record's directory, which is on disk once something in it was settled. With id "" an unused one is minted into it. -EEXIST: there is one, -EINVAL: no such id. */
int record_create(int root, char id[static SESSION_ID_MAX + 1], int *ret_dir);
int record_open(int root, const char *id); /* the fd; -ENOENT, -EINVAL, or -EPERM as above */

/* Removes all of it. Its description goes last, so that a removal that was cut short can be asked for again. */
int record_remove(int root, const char *id);

/* One that was being made, or was removed but for its directory, when errandd was killed: it would keep its id from everybody. -EEXIST or
 * -ENOTEMPTY, and left alone, when there is more in it. */
int record_remove_unfinished(int root, const char *id);

int record_replace_file(int dir, const char *name, const char *text, size_t size);
/* For what nobody reads after a loss of power: not synced. */
int record_place_file(int dir, const char *name, const char *text, size_t size);

int record_write_ahead(int dir, const char *name, const char *text, size_t size);
/* Beside record_write_ahead() in another thread: it sleeps. 1; 0: there was nothing ahead. After an error what was ahead is so still. */
int record_settle(int dir, const char *name);

/* What is ahead of a file, the newest first. */
#define RECORD_AHEAD_MAX 2U
/* As record_read_file(); -ENOENT. */
int record_read_ahead(int dir, const char *name, size_t which, char **ret, size_t *ret_size);
/* After a start, with nobody else about: that one is settled, and the other dropped. `which` may be RECORD_AHEAD_MAX: neither is whole. */
int record_settle_found(int dir, const char *name, size_t which);

/* *ret is NUL-terminated and to free. -ENOENT; -EFBIG over RECORD_FILE_MAX; -EPERM: not a regular file of ours with one name. */
int record_read_file(int dir, const char *name, char **ret, size_t *ret_size);

/* For a transcript, events or a spool: made if need be, for the holder; and errandd's own view of it. */
int record_open_append(int dir, const char *name);
/* Of the receipts, for the broker: it reads them too, so that after it was killed it finds where the last whole one ends. */
int record_open_spool(int dir);
int record_open_read(int dir, const char *name);

/* Append-only is a habit of the holder, not a boundary: it can clear the flag. Compares the file with the length that was seen before and keeps
 * the new one. -ESTALE: it is shorter, so its holder tampered with it; *length stays. */
int record_watch_length(int fd, uint64_t *length);

/* Moves what there is of a damaged session out of the way, record and STATEDIR/ID, to STATEDIR/.damaged/ID-NUMBER/{record,session}, so that its id is
 * free and nothing of it is lost. *ret_name is ID-NUMBER, to free. */
int record_set_aside(int state_dir, int root, const char *id, char **ret_name);
