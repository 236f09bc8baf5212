/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What bailey tells the shim: its report, the terminal's master, its messages, and the closing line among them. */

#include "shim/shim.h"

/* sd-event handlers of the three descriptors; each closes its descriptor at the end and calls shim_check_end(). */
int report_on_report(sd_event_source *source, int fd, uint32_t revents, void *userdata);
int report_on_console(sd_event_source *source, int fd, uint32_t revents, void *userdata);
int report_on_log(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* One line without its newline: bailey's closing JSON fills *ret and is 1; anything else is 0. */
int report_parse_closing(const char *line, size_t size, ExitStatus *ret);
