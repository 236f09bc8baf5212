/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What errandd can and cannot enforce on this host, in words: told at the start and whenever somebody asks. A gap is always stated. */

#include "errandd/config.h"

typedef struct ReportInput {
        const Config *config;
        ConfigMode mode;
        const char *probe_problem; /* why it could not be; NULL: it could */
        char *const *warnings;   /* beside the configuration's own */
        char *const *gaps;       /* bailey's names of what it cannot enforce */
        bool scopes;             /* they can be made here */
        char *const *controllers; /* and limit what these stand for: "memory", "pids", "cpu" */
        bool shared_account;     /* a session and its broker run under one account */
        const char *account;     /* whose rights sessions have when nothing else decides; NULL: errandd's own */
        bool one_account;        /* and nothing else ever does */
} ReportInput;

typedef struct Report {
        char **lines; /* without their ends */
        char **gaps;  /* a sentence each */
} Report;

void report_done(Report *r);
int report_build(const ReportInput *in, Report *ret);

/* The sentence for one of bailey's gaps, NULL for a name that is not known here. */
const char *report_gap_sentence(const char *name);
