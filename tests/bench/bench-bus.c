/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

/* What a client waits for: every object at once, and one call. Client and daemon share one thread here. */

#define SESSIONS 500U
#define CALLS 10000U

static double milliseconds(usec_t since) {
        return (double) (now_monotonic() - since) / 1000.0;
}

int main(void) {
        World w = world_new(NULL);
        sd_bus *client = world_client(&w, geteuid());
        double best = 1e9;
        usec_t start;
        Reply r;

        for (unsigned i = 0; i < SESSIONS; i++) {
                char id[16];

                snprintf(id, sizeof(id), "s%u", i);
                fake_session(w.manager, id, geteuid());
        }
        for (unsigned i = 0; i < 20; i++) {
                start = now_monotonic();
                r = call(&w, client, BUS_ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL);
                best = MIN(best, milliseconds(start));
                reply_done(&r);
        }
        printf("GetManagedObjects, %u sessions %8.2f ms (at most 10)\n", SESSIONS, best);

        start = now_monotonic();
        for (unsigned i = 0; i < CALLS; i++) {
                r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", "s", "s1");
                reply_done(&r);
        }
        printf("one call                        %8.3f ms\n", milliseconds(start) / CALLS);
        sd_bus_close_unref(client);
        world_done(&w);
        return 0;
}
