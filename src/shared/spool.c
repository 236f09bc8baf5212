/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>

#include "basic/text.h"
#include "shared/spool.h"

/* In the order of ReceiptOutcome; the words are the ones of the receipts' documentation. */
static const char *const outcomes[_RECEIPT_OUTCOME_MAX] = {
        [RECEIPT_COMPLETED] = "completed",
        [RECEIPT_INTERRUPTED] = "interrupted",
        [RECEIPT_DENIED] = "denied",
        [RECEIPT_REFUSED] = "refused",
        [RECEIPT_UPSTREAM_UNREACHABLE] = "upstream-unreachable",
};

const char *receipt_outcome_to_string(ReceiptOutcome o) {
        return o >= 0 && o < _RECEIPT_OUTCOME_MAX ? outcomes[o] : NULL;
}

ReceiptOutcome receipt_outcome_from_string(const char *s) {
        for (size_t i = 0; i < ELEMENTSOF(outcomes); i++)
                if (streq(outcomes[i], s))
                        return (ReceiptOutcome) i;
        return _RECEIPT_OUTCOME_INVALID;
}

/* CRC-32C, reflected polynomial 0x82f63b78 (RFC 3720, appendix B.4), a byte at a time, of whose halves the results are added up. */
uint32_t crc32c_by_table(const void *data, size_t size) {
        static const uint32_t high[16] = {
                0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
        }, low[16] = {
                0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8, 0xd4ca64eb,
                0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3, 0xac78bf27, 0x5e133c24,
        };
        const uint8_t *p = data;
        uint32_t crc = UINT32_MAX;

        for (size_t i = 0; i < size; i++) {
                uint8_t b = (uint8_t) (crc ^ p[i]);
                crc = (crc >> 8) ^ low[b & 15] ^ high[b >> 4];
        }
        return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(const void *data, size_t size) {
        const uint8_t *p = data, *end = p + size;
        uint64_t crc = UINT32_MAX, word;

        for (; end - p >= (ptrdiff_t) sizeof(word); p += sizeof(word)) {
                memcpy(&word, p, sizeof(word));
                crc = __builtin_ia32_crc32di(crc, word);
        }
        for (; p < end; p++)
                crc = __builtin_ia32_crc32qi((uint32_t) crc, *p);
        return ~(uint32_t) crc;
}
#endif

uint32_t crc32c(const void *data, size_t size) {
#ifdef __x86_64__
        if (__builtin_cpu_supports("sse4.2"))
                return crc32c_by_instruction(data, size);
#endif
        return crc32c_by_table(data, size);
}

static void put_u16(uint8_t *p, uint16_t v) {
        v = htole16(v);
        memcpy(p, &v, sizeof(v));
}

static void put_u32(uint8_t *p, uint32_t v) {
        v = htole32(v);
        memcpy(p, &v, sizeof(v));
}

static uint16_t get_u16(const uint8_t *p) {
        uint16_t v;
        memcpy(&v, p, sizeof(v));
        return le16toh(v);
}

static uint32_t get_u32(const uint8_t *p) {
        uint32_t v;
        memcpy(&v, p, sizeof(v));
        return le32toh(v);
}

void spool_encode(SpoolKind kind, const char *payload, size_t size, uint8_t *out) {
        memcpy(out, "ERRS", 4);
        put_u16(out + 4, SPOOL_VERSION);
        put_u16(out + 6, (uint16_t) kind);
        put_u32(out + 8, (uint32_t) size);
        put_u32(out + 12, crc32c(payload, size));
        memcpy(out + SPOOL_HEADER_SIZE, payload, size);
}

ssize_t spool_decode(const uint8_t *data, size_t size, SpoolKind *ret_kind, const char **ret_payload, size_t *ret_size) {
        if (memcmp(data, "ERRS", MIN(size, (size_t) 4)) != 0)
                return -EBADMSG;
        if (size < SPOOL_HEADER_SIZE)
                return 0;

        uint16_t kind = get_u16(data + 6);
        uint32_t length = get_u32(data + 8);
        if (get_u16(data + 4) != SPOOL_VERSION || kind == 0 || kind >= _SPOOL_KIND_MAX || length > SPOOL_PAYLOAD_MAX)
                return -EBADMSG;
        if (size - SPOOL_HEADER_SIZE < length)
                return 0;
        if (crc32c(data + SPOOL_HEADER_SIZE, length) != get_u32(data + 12))
                return -EBADMSG;

        *ret_kind = (SpoolKind) kind;
        *ret_payload = (const char *) data + SPOOL_HEADER_SIZE;
        *ret_size = length;
        return (ssize_t) (SPOOL_HEADER_SIZE + length);
}
