/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/policy-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A policy file from anywhere: it is read, or every problem has a place; never a crash, never both. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Findings findings = {};
        Layer *layer = NULL;

        const PolicyPlaces places = {.home = "/home/fuzz", .working_directory = "/fuzz/here"};
        const PolicyText text = {
                .text = (const char *) data,
                .size = size,
                .name = "/fuzz/policy.toml",
                .base = "/fuzz",
                .kind = size % 2 ? POLICY_PROFILE : POLICY_FILE,
                .places = &places,
        };

        int r = policy_file_parse(&text, &findings, &layer);
        if (r >= 0 && findings_failed(&findings) == !!layer)
                abort();
        for (char **s = findings.errors; s && *s; s++)
                if (strncmp(*s, "/fuzz/policy.toml:", 18) != 0)
                        abort();
        for (size_t i = 0; layer && i < layer->n_rules; i++)
                if (layer->rules[i].path[0] != '/' || (layer->rules[i].deny && layer->rules[i].rights))
                        abort();
        layer_free(layer);
        findings_done(&findings);
        return 0;
}
