/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "basic/utf8.h"
#include "errandd/config.h"
#include "fuzz.h"
#include "shared/json-check.h"

static bool is_utf8(const uint8_t *data, size_t size) {
        for (size_t n; size > 0; data += n, size -= n)
                if ((n = utf8_sequence(data, size)) == 0 || *data == 0)
                        return false;
        return true;
}

/* A sentence is one line that moves no cursor. */
static void check_sentence(const char *s) {
        HOLDS(startswith(s, "f: "));
        for (; *s; s++)
                HOLDS((unsigned char) *s >= 0x20 && *s != 0x7f);
}

static void check_config(const Config *c, ConfigMode mode) {
        HOLDS(c->sandbox.ports && c->sandbox.cpus > 0 && c->sandbox.memory > 0 && c->sandbox.pids > 0);
        HOLDS(mode != CONFIG_SYSTEM || (c->project_root[0] == '/' && c->state_dir[0] == '/'));
        HOLDS(c->sandbox.egress.given || (strv_length(c->sandbox.egress.allow) == 1 && streq(c->sandbox.egress.allow[0], "*")));
        for (size_t i = 0; i < c->agent.n_providers; i++) {
                const ConfigProvider *p = &c->agent.providers[i];
                HOLDS(p->id && p->credential_name && (!p->strict_capabilities || p->n_capabilities > 0 || p->every_call));
                HOLDS(mode != CONFIG_EMBEDDED || p->credential.kind != SECRET_SOURCE_SYSTEMD_CREDENTIAL);
        }
        for (char **w = c->warnings; w && *w; w++)
                check_sentence(*w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;

        if (json_check(text, size, CONFIG_DEPTH_MAX, NULL) == 0)
                HOLDS(is_utf8(data, size));

        for (ConfigMode mode = CONFIG_SYSTEM; mode <= CONFIG_EMBEDDED; mode++) {
                char **problems = NULL;
                Config *c = NULL;

                int r = config_parse("f", text, size, mode, &c, &problems);
                HOLDS((r == 0) == !!c && (r == -EBADMSG) == !!problems && (r == 0 || r == -EBADMSG));
                if (c)
                        check_config(c, mode);
                for (char **s = problems; s && *s; s++)
                        check_sentence(*s);
                config_free(c);
                strv_free(problems);
        }
        return 0;
}
