/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/generate.h"
#include "bailey/trace.h"
#include "fuzz.h"

/* A trace of any bytes: read whole or refused whole; what was read is written as a trace that reads the same, and a policy can be made
 * of it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Trace t = {}, back = {};
        char *text = NULL, *policy = NULL;
        size_t length = 0, policy_size = 0;

        int r = trace_parse((const char *) data, size, &t);
        HOLDS(r == 0 || r == -EBADMSG || r == -ENOMEM);
        if (r < 0) {
                HOLDS(!t.target && t.accesses.n == 0);
                return 0;
        }
        access_list_sort(&t.accesses);
        HOLDS(trace_print(&t, &text, &length) == 0);
        HOLDS(trace_parse(text, length, &back) == 0);
        HOLDS(back.accesses.n == t.accesses.n && back.calls == t.calls);

        FILE *f = open_memstream(&policy, &policy_size);
        HOLDS(f);
        HOLDS(generate_policy(&t, &(GenerateOptions) {.target = t.target}, f) >= 0);
        HOLDS(fclose(f) == 0);
        free(policy);
        free(text);
        trace_done(&t);
        trace_done(&back);
        return 0;
}
