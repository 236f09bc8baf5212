/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Strict readers: the whole string, ASCII digits only, no sign, no white space. -EINVAL for another form, -ERANGE outside. */
int parse_u64(const char *s, uint64_t max, uint64_t *ret);
int parse_u64_n(const char *s, size_t size, uint64_t max, uint64_t *ret);
int parse_fd(const char *s, int *ret);               /* 0 … INT_MAX; not that it is open */
int parse_port(const char *s, uint16_t *ret);        /* 1 … 65535 */
int parse_bytes(const char *s, uint64_t *ret);       /* "4g", "512M", "65536", suffixes k m g t of 1024, at most 2^60 */

/* "127.0.0.1:PORT": an address of 127.0.0.0/8 in canonical form. *ret_address in network byte order. */
int parse_loopback_listen(const char *s, uint32_t *ret_address, uint16_t *ret_port);
