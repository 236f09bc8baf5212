/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "bailey/closing.h"
#include "basic/io.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"

/* What held the network; NULL: nothing did, which is a gap. */
static const char *network_words(const RunResult *r, const Network *n) {
        switch (n->mode) {
        case NETWORK_BROKER:
        case NETWORK_EGRESS_PROXY:
                return "egress broker";
        case NETWORK_LANDLOCK:
        case NETWORK_PROXY:
                if (!network_has_ports(n))
                        return "egress denied";
                return r->landlock_abi < LANDLOCK_ABI_PORTS ? NULL : n->connect_any ? "TCP ports to listen on" : "TCP ports";
        case NETWORK_ISOLATED:
        case _NETWORK_MODE_MAX:
        case _NETWORK_MODE_INVALID:
                break;
        }
        /* Without namespaces a Unix socket may lead to somebody who has the network. */
        return r->isolated ? "egress denied" : r->own_network ? "own network" : "internet sockets denied";
}

/* Short names of the mechanisms that held, in the order of the list. */
static int enforced(const RunResult *r, const Network *network, char ***ret) {
        char **list = NULL;
        int e = 0;

        if (r->isolated)
                e = strv_extend(&list, "own root");
        if (e >= 0 && !(r->gaps & (1U << GAP_NAMESPACES | 1U << GAP_ISOLATION)))
                e = strv_extend(&list, "namespaces");
        if (e >= 0 && r->landlock_abi > 0)
                e = strv_extend_format(&list, "landlock ABI %d", r->landlock_abi);
        if (e >= 0 && !(r->gaps & (1U << GAP_SECCOMP)))
                e = strv_extend(&list, "seccomp");
        if (e >= 0 && r->limited)
                e = strv_extend(&list, "limits");
        if (e >= 0 && network_words(r, network))
                e = strv_extend(&list, network_words(r, network));
        if (e >= 0 && network->mode == NETWORK_PROXY)
                e = strv_extend(&list, "private address");
        if (e < 0) {
                strv_free(list);
                return e;
        }
        *ret = list;
        return 0;
}

void closing_print(const RunResult *result, const Network *network, bool quiet, char *const *appeared) {
        _cleanup_strv_free_ char **list = NULL;

        if (result->survivors > 0)
                log_info("%u process%s that outlived the command %s ended", result->survivors, result->survivors == 1 ? "" : "es",
                         result->survivors == 1 ? "was" : "were");
        if (result->oom_kills > 0)
                log_warning("out of memory: the limit of memory ended %s", result->killed ? "the command" : "part of the command");
        if (!quiet && enforced(result, network, &list) >= 0) {
                _cleanup_free_ char *text = strv_join(list, ", ");
                if (text)
                        log_info("enforced: %s", text);
        }
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (result->gaps & ((GapSet) 1 << g))
                        log_warning("not enforced: %s: %s", gap_to_string(g), gap_describe(g));
        for (; appeared && *appeared; appeared++)
                log_warning("git outside could run what this command left: %s; look at it first", *appeared);
}

void closing_print_json(const RunResult *result, const Network *network, char *const *appeared) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_strv_free_ char **list = NULL;
        _cleanup_free_ char *text = NULL, *line = NULL;

        if (enforced(result, network, &list) < 0) {
                log_oom();
                return;
        }
        json_open_object(&w, NULL);
        json_add_strings(&w, "enforced", list);
        gaps_add_json(&w, result->gaps);
        json_add_u64(&w, "status", (uint64_t) result->status);
        if (result->signal > 0)
                json_add_u64(&w, "signal", (uint64_t) result->signal);
        if (result->killed)
                json_add_bool(&w, "killed", true);
        json_add_u64(&w, "survivors", result->survivors);
        if (result->oom_kills > 0)
                json_add_u64(&w, "oom_kills", result->oom_kills);
        if (appeared)
                json_add_strings(&w, "git", appeared);
        json_close_object(&w);
        if (json_writer_finish(&w, &text, NULL) < 0 || asprintf(&line, "%s\n", text) < 0) {
                log_oom();
                return;
        }
        (void) write_all(STDERR_FILENO, line, strlen(line));
}
