/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "errandd/action.h"
#include "errandd/bus-objects.h"
#include "errandd/bus-options.h"
#include "errandd/session-options.h"
#include "errandd/session-state.h"
#include "shared/bus-error.h"

/* What the tables say of the bus API and introspection does not, a line each: who may, errors, options, states. */

static void print_options(const char *method, const BusOption *table, size_t n) {
        for (size_t i = 0; i < n; i++)
                printf("option %s %s %s\n", method, table[i].name, table[i].type);
}

int main(void) {
        static const char *const kinds[] = {[MEMBER_METHOD] = "method", [MEMBER_READ] = "read", [MEMBER_WRITE] = "write", [MEMBER_SAID] = "said"};
        const BusOption *options;
        const Action *table;
        size_t n;

        table = action_table(&n);
        for (size_t i = 0; i < n; i++)
                printf("action %s %s %s %s\n", kinds[table[i].kind], table[i].interface, table[i].member,
                       permission_action_id(table[i].permission, true) ?: table[i].permission == PERMISSION_ROOT ? "root" : "everybody");
        for (BusError e = BUS_ERROR_NONE + 1; e < _BUS_ERROR_MAX; e++)
                printf("error %s %s\n", bus_error_to_name(e), strerrorname_np(bus_error_to_errno(e)));
        for (SessionState s = 0; s < SESSION_COLLECTED; s++)
                printf("state %s\n", session_state_to_string(s));
        options = session_options_table(&n);
        print_options("CreateSession", options, n);
        options = receipt_options_table(&n);
        print_options("ListReceipts", options, n);
        return 0;
}
