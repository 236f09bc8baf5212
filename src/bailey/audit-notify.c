/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/audit-call.h"
#include "bailey/audit-notify.h"
#include "bailey/seccomp.h"
#include "basic/fd.h"
#include "basic/text.h"

/* SECCOMP_IOCTL_NOTIF_SET_FLAGS and SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6: caller and observer take turns on one CPU. */
#define IOCTL_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define FLAG_SYNC_WAKE_UP (UINT64_C(1) << 0)

/* Structures may have grown in a newer kernel, which says how large it wants them. */
static int make_buffers(Audit *a) {
        struct seccomp_notif_sizes sizes = {};

        if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
                return -errno;
        a->request_size = MAX((size_t) sizes.seccomp_notif, sizeof(struct seccomp_notif));
        a->response_size = MAX((size_t) sizes.seccomp_notif_resp, sizeof(struct seccomp_notif_resp));
        a->request = calloc(1, a->request_size);
        a->response = calloc(1, a->response_size);
        return a->request && a->response ? 0 : -ENOMEM;
}

static int begin(Observer *o, const Plan *plan, int listener) {
        Audit *a = (Audit *) o;

        a->plan = plan;
        o->listener = listener;
        (void) ioctl(listener, IOCTL_SET_FLAGS, FLAG_SYNC_WAKE_UP);
        return make_buffers(a);
}

static bool still_waits(const Audit *a) {
        return ioctl(a->observer.listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &a->request->id) == 0;
}

static void serve(Observer *o) {
        Audit *a = (Audit *) o;

        memset(a->request, 0, a->request_size);
        /* ENOENT: whoever called is gone. */
        if (ioctl(o->listener, SECCOMP_IOCTL_NOTIF_RECV, a->request) < 0)
                return;
        a->trace.calls++;

        const AuditCall *call = seccomp_audit_call(a->request->data.arch, a->request->data.nr);
        AuditedCall seen = {};
        if (call) {
                audit_call_read(a, call, &seen);
                /* The memory that was read is that process's only if it still waits; its number may be another's by now. */
                if (still_waits(a))
                        audit_call_keep(a, &seen);
                audit_call_done(&seen);
        } else
                a->trace.unreadable++;

        memset(a->response, 0, a->response_size);
        a->response->id = a->request->id;
        a->response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        (void) ioctl(o->listener, SECCOMP_IOCTL_NOTIF_SEND, a->response);
}

void audit_init(Audit *a, bool unconfined) {
        *a = (Audit) {
                .observer = {.unconfined = unconfined, .listener = -EBADF, .begin = begin, .serve = serve},
                .trace = {.unconfined = unconfined},
                .view = {.root = -EBADF},
        };
}

void audit_done(Audit *a) {
        safe_close(a->observer.listener);
        safe_close(a->view.root);
        strv_free(a->view.links);
        free(a->request);
        free(a->response);
        trace_done(&a->trace);
}
