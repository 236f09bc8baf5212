/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* An account database that knows nobody, and while /run/nss-stall is there does not answer errandd. */

#define EXPORT __attribute__((visibility("default")))

static enum nss_status answer(int *error) {
        while (strcmp(program_invocation_short_name, "errandd") == 0 && access("/run/nss-stall", F_OK) == 0)
                (void) usleep(10000);
        *error = ENOENT;
        return NSS_STATUS_NOTFOUND;
}

EXPORT enum nss_status _nss_stall_getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, int *error);
EXPORT enum nss_status _nss_stall_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, int *error);
EXPORT enum nss_status _nss_stall_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t size, int *error);
EXPORT enum nss_status _nss_stall_getgrgid_r(gid_t gid, struct group *entry, char *buffer, size_t size, int *error);
EXPORT enum nss_status _nss_stall_initgroups_dyn(const char *user, gid_t gid, long *start, long *size, gid_t **groups, long limit, int *error);

#define UNUSED __attribute__((unused))

enum nss_status _nss_stall_getpwnam_r(UNUSED const char *name, UNUSED struct passwd *entry, UNUSED char *buffer, UNUSED size_t size, int *error) {
        return answer(error);
}

enum nss_status _nss_stall_getpwuid_r(UNUSED uid_t uid, UNUSED struct passwd *entry, UNUSED char *buffer, UNUSED size_t size, int *error) {
        return answer(error);
}

enum nss_status _nss_stall_getgrnam_r(UNUSED const char *name, UNUSED struct group *entry, UNUSED char *buffer, UNUSED size_t size, int *error) {
        return answer(error);
}

enum nss_status _nss_stall_getgrgid_r(UNUSED gid_t gid, UNUSED struct group *entry, UNUSED char *buffer, UNUSED size_t size, int *error) {
        return answer(error);
}

enum nss_status _nss_stall_initgroups_dyn(UNUSED const char *user, UNUSED gid_t gid, UNUSED long *start, UNUSED long *size, UNUSED gid_t **groups, UNUSED long limit,
                                          int *error) {
        return answer(error);
}
