/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "basic/parse.h"
#include "basic/text.h"
#include "shared/timespan.h"

/* From long to short: the order in which parts may follow each other. The first name is the one that is written. */
static const struct {
        usec_t usec;
        const char *names[5];
} units[] = {
        {USEC_PER_WEEK, {"w", "week", "weeks"}},
        {USEC_PER_DAY, {"d", "day", "days"}},
        {USEC_PER_HOUR, {"h", "hr", "hour", "hours"}},
        {USEC_PER_MINUTE, {"m", "min", "minute", "minutes"}},
        {USEC_PER_SEC, {"s", "sec", "second", "seconds"}},
        {USEC_PER_MSEC, {"ms", "msec"}},
        {1, {"us", "usec"}},
};

static size_t find_unit(const char *s, size_t size) {
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                for (size_t k = 0; k < ELEMENTSOF(units[i].names) && units[i].names[k]; k++)
                        if (strlen(units[i].names[k]) == size && memcmp(units[i].names[k], s, size) == 0)
                                return i;
        return SIZE_MAX;
}

int timespan_parse(const char *s, usec_t max, usec_t *ret) {
        size_t next_unit = 0; /* the longest one that may still come */
        usec_t total = 0;

        do {
                size_t digits = strspn(s, "0123456789");
                const char *name = s + digits + (digits > 0 && s[digits] == ' ');
                size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz");
                uint64_t value;

                size_t unit = find_unit(name, size);
                if (digits == 0 || unit == SIZE_MAX || unit < next_unit)
                        return -EINVAL;
                next_unit = unit + 1;
                int r = parse_u64_n(s, digits, UINT64_MAX, &value);
                if (r < 0)
                        return r;
                if (__builtin_mul_overflow(value, units[unit].usec, &value) || __builtin_add_overflow(total, value, &total))
                        return -ERANGE;

                s = name + size;
                if (s[0] == ' ' && s[1] != 0)
                        s++;
        } while (*s);

        if (total > max)
                return -ERANGE;
        *ret = total;
        return 0;
}

const char *timespan_format(usec_t span, char buffer[static TIMESPAN_TEXT_MAX]) {
        size_t size = 0;

        if (span == 0 || span == USEC_INFINITY)
                return strcpy(buffer, span == 0 ? "0s" : "infinity");
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                usec_t n = span / units[i].usec;
                if (n == 0)
                        continue;
                span %= units[i].usec;
                size += (size_t) snprintf(buffer + size, TIMESPAN_TEXT_MAX - size, "%s%" PRIu64 "%s", size > 0 ? " " : "", n,
                                          units[i].names[0]);
        }
        return buffer;
}
