/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What sleeps on the disk of the state directory, in errandd's thread for it (worker.h): one after the other, in the order in which they were asked for,
 * while the loop goes on. */

#include "errandd/manager.h"

#define DISK_WORKS_MAX 8192U                  /* each session has one or two, and a session's record one at a time */
#define DISK_PATIENCE_USEC (5 * USEC_PER_SEC) /* of errandd's end */

typedef struct DiskWork DiskWork;

/* error: 0 or a negative errno. The session of that id may have gone. */
typedef void (*DiskDone)(Manager *m, const char *id, int error, void *userdata);

/* These fail with a negative errno where the thread has too much to do, and call nothing then. done may be NULL. */

/* What session_record_write() put ahead gets on disk. Told to people when it fails: whoever wrote it is not waiting any more. */
void disk_settle_record(Session *s);
/* A file of its record is replaced. text is taken, always. */
int disk_replace(Manager *m, const char *id, const char *name, char *text, size_t size, DiskDone done, void *userdata);
int disk_remove_record(Manager *m, const char *id, DiskDone done, void *userdata);
/* The receipts' journal goes into receipts.db, if it has grown by enough, and not twice at a time. */
void disk_checkpoint_store(Manager *m);
/* Where projects are names: it becomes that account's, unless it is somebody's (-EEXIST). id, when it is told: the project. */
int disk_claim_project(Manager *m, const char *project, uid_t owner, DiskDone done, void *userdata);
