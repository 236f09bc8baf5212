/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "bailey/findings.h"
#include "basic/log.h"
#include "basic/text.h"

void findings_done(Findings *f) {
        f->errors = strv_free(f->errors);
        f->warnings = strv_free(f->warnings);
}

static void add(Findings *f, char ***list, const char *format, va_list ap) _printf_(3, 0);
static void add(Findings *f, char ***list, const char *format, va_list ap) {
        char *text = string_format_list(format, ap);

        if (!text) {
                f->oom = true;
                return;
        }
        if (strv_contains(*list, text)) {
                free(text);
                return;
        }
        if (strv_consume(list, text) < 0)
                f->oom = true;
}

void finding_error(Findings *f, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        add(f, &f->errors, format, ap);
        va_end(ap);
}

void finding_warning(Findings *f, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        add(f, &f->warnings, format, ap);
        va_end(ap);
}

bool findings_failed(const Findings *f) {
        return f->oom || f->errors;
}

unsigned findings_count(const Findings *f) {
        return (unsigned) strv_length(f->errors) + f->oom;
}

void findings_print(const Findings *f) {
        for (char **s = f->warnings; s && *s; s++)
                log_warning("%s", *s);
        for (char **s = f->errors; s && *s; s++)
                log_error("%s", *s);
        if (f->oom)
                log_oom();
}
