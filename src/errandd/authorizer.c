/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "errandd/authorizer.h"

bool authorizer_peer_allowed(uid_t uid) {
        return uid != (uid_t) -1 && (uid == geteuid() || uid == 0);
}

static bool same_uid_operator(_unused_ Authorizer *a, uid_t uid) {
        return authorizer_peer_allowed(uid);
}

static int same_uid_check(_unused_ Authorizer *a, const AuthorizeRequest *request, _unused_ AuthorizeDone done, _unused_ void *userdata,
                          _unused_ void **ret_ticket) {
        return authorizer_peer_allowed(request->uid);
}

Authorizer *authorizer_same_uid(void) {
        static Authorizer same_uid = {.check = same_uid_check, .operator = same_uid_operator};

        return &same_uid;
}
