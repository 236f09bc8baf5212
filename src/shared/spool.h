/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The receipts spool: an append-only file that a broker writes and errandd ingests by offset. A record is a 16 byte header,
 * little endian: magic "ERRS" (4 bytes as text), version u16 = 1, kind u16, payload length u32, CRC-32C (Castagnoli) of the payload
 * u32; then the payload, one JSON object in UTF-8. A torn last record is not an error: it is not there yet. */

#include "basic/macro.h"
#include "basic/clock.h"

#define SPOOL_VERSION 1
#define SPOOL_HEADER_SIZE 16U
#define SPOOL_PAYLOAD_MAX (4U * 1024U)

typedef enum SpoolKind {
        SPOOL_RECEIPT = 1,    /* a provider call that ended */
        SPOOL_GRANT_USED = 2, /* a grant for once was used; synced before the dial */
        _SPOOL_KIND_MAX,
        _SPOOL_KIND_INVALID = -EINVAL,
} SpoolKind;

typedef enum ReceiptOutcome {
        RECEIPT_COMPLETED,            /* "completed" */
        RECEIPT_INTERRUPTED,          /* "interrupted": the answer failed, was cut, or the session hung up part way */
        RECEIPT_DENIED,               /* "denied": without the session's stand-in */
        RECEIPT_REFUSED,              /* "refused": the broker would not forward it, or its answer's declared size */
        RECEIPT_UPSTREAM_UNREACHABLE, /* "upstream-unreachable" */
        _RECEIPT_OUTCOME_MAX,
        _RECEIPT_OUTCOME_INVALID = -EINVAL,
} ReceiptOutcome;

const char *receipt_outcome_to_string(ReceiptOutcome o);
ReceiptOutcome receipt_outcome_from_string(const char *s);

uint32_t crc32c(const void *data, size_t size);
uint32_t crc32c_by_table(const void *data, size_t size); /* where the processor has no instruction for it */

/* Writes header and payload into out (SPOOL_HEADER_SIZE + size bytes). */
void spool_encode(SpoolKind kind, const char *payload, size_t size, uint8_t *out);

/* Looks at data[0…size): > 0 the bytes of a whole record with *ret_kind and *ret_payload set (pointing into data), 0 when more
 * is needed, -EBADMSG when it is damaged. */
ssize_t spool_decode(const uint8_t *data, size_t size, SpoolKind *ret_kind, const char **ret_payload, size_t *ret_size);
