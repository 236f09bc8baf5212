/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much fits into a conversation with an agent. The shim holds to it, errandd counts with it, and the command says it before anything is sent. */

#define PROMPT_SIZE_MAX (128U * 1024U) /* bytes: a person's words, and some pages that they paste */
#define PROMPTS_MAX 64U                /* that wait in one session */
#define QUESTIONS_MAX 8U               /* open at once: a person has to answer each */
