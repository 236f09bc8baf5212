/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Messages to errandd by chance: of every member and of none, of every object and of none, with arguments of the right type and of any other. */

#include <systemd/sd-bus.h>

#include "basic/macro.h"

void random_begin(uint64_t seed);
uint32_t random_below(uint32_t n);

typedef struct RandomCall {
        const char *path, *interface, *member; /* "" for no interface */
        const char *of, *property;             /* of a call of org.freedesktop.DBus.Properties; else "" */
        bool answered;                         /* a call that wants an answer, and no signal, say */
} RandomCall;

/* Negative: libsystemd sends no such message. */
int random_call(sd_bus *bus, sd_bus_message **ret, RandomCall *ret_call);
