/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/random.h>

#include "errandd/ports.h"

#define N_PORTS (PORT_LAST - PORT_FIRST + 1)

int ports_take(Ports *p, uint16_t *ret) {
        uint32_t start;

        if (getrandom(&start, sizeof(start), 0) != (ssize_t) sizeof(start))
                return -EIO;
        for (uint32_t i = 0; i < N_PORTS; i++) {
                uint32_t at = (start % N_PORTS + i) % N_PORTS;
                if (p->used[at / 8] & (1U << (at % 8)))
                        continue;
                p->used[at / 8] = (uint8_t) (p->used[at / 8] | (1U << (at % 8)));
                *ret = (uint16_t) (PORT_FIRST + at);
                return 0;
        }
        return -EAGAIN;
}

int ports_reserve(Ports *p, uint16_t port) {
        if (port < PORT_FIRST || port > PORT_LAST)
                return -ERANGE;
        uint32_t at = port - PORT_FIRST;
        if (p->used[at / 8] & (1U << (at % 8)))
                return -EBUSY;
        p->used[at / 8] = (uint8_t) (p->used[at / 8] | (1U << (at % 8)));
        return 0;
}

void ports_release(Ports *p, uint16_t port) {
        if (port < PORT_FIRST || port > PORT_LAST)
                return;
        uint32_t at = port - PORT_FIRST;
        p->used[at / 8] = (uint8_t) (p->used[at / 8] & ~(1U << (at % 8)));
}
