/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/json-writer.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "broker/receipt.h"
#include "shared/scrub.h"

#define CREDENTIAL_PREFIX "errand-session-"
#define CREDENTIAL_DIGITS 64U

const char *receipt_method(Slice method) {
        static const char *const standard[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"};

        for (size_t i = 0; i < ELEMENTSOF(standard); i++)
                if (slice_is(method, standard[i]))
                        return standard[i];
        return "OTHER";
}

Slice receipt_split_query(Slice target, size_t *ret_query_size) {
        const char *mark = target.size > 0 ? memchr(target.data, '?', target.size) : NULL;
        size_t n = mark ? (size_t) (mark - target.data) : target.size;

        *ret_query_size = mark ? target.size - n - 1 : 0;
        return (Slice) {target.data, n};
}

/* Bytes up to a '?' or '#', plain or encoded. */
static size_t before_query(const char *data, size_t size) {
        for (size_t i = 0; i < size; i++) {
                if (data[i] == '?' || data[i] == '#')
                        return i;
                if (data[i] == '%' && size - i >= 3 && data[i + 1] == '3' && ascii_lower(data[i + 2]) == 'f')
                        return i;
        }
        return size;
}

/* In place; a '%' that begins no octet stays. */
static size_t decode_once(char *data, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                int high, low;
                if (data[i] == '%' && size - i >= 3 && (high = ascii_hex_value(data[i + 1])) >= 0 &&
                    (low = ascii_hex_value(data[i + 2])) >= 0) {
                        data[n++] = (char) (high * 16 + low);
                        i += 2;
                } else
                        data[n++] = data[i];
        }
        return n;
}

/* Replaces whatever reads like a proxy credential or a stand-in, of this session or of another: in place, as it only shrinks. */
static size_t scrub_credentials(char *data, size_t size) {
        const size_t whole = STRLEN(CREDENTIAL_PREFIX) + CREDENTIAL_DIGITS;
        size_t n = 0;

        for (size_t i = 0; i < size;) {
                bool is = size - i >= whole && ascii_case_equal(data + i, STRLEN(CREDENTIAL_PREFIX), CREDENTIAL_PREFIX);
                for (size_t k = STRLEN(CREDENTIAL_PREFIX); is && k < whole; k++)
                        is = ascii_hex_value(data[i + k]) >= 0;
                if (!is) {
                        data[n++] = data[i++];
                        continue;
                }
                memcpy(data + n, SCRUB_REPLACEMENT, STRLEN(SCRUB_REPLACEMENT));
                n += STRLEN(SCRUB_REPLACEMENT);
                i += whole;
        }
        return n;
}

/* U+202A…U+202E and U+2066…U+2069 reorder a line on a terminal; U+2028 and U+2029 break one. */
static bool reorders(const unsigned char *s, size_t n) {
        return n == 3 && s[0] == 0xe2 &&
               ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

static int escape_and_cut(const char *data, size_t size, char **ret) {
        char *out = malloc(RECEIPT_PATH_MAX + 1);
        size_t n = 0;

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < size;) {
                const unsigned char *s = (const unsigned char *) data + i;
                if (*s >= 0x20 && *s < 0x7f && n < RECEIPT_PATH_MAX) { /* nearly all there is */
                        out[n++] = data[i++];
                        continue;
                }
                size_t k = utf8_sequence(s, size - i);
                bool control = k == 0 || s[0] < 0x20 || s[0] == 0x7f || (k == 2 && s[0] == 0xc2 && s[1] < 0xa0) || reorders(s, k);

                k = MAX(k, (size_t) 1);
                if (n + (control ? 4 * k : k) > RECEIPT_PATH_MAX)
                        break;
                for (size_t j = 0; j < k; j++)
                        if (control)
                                n += (size_t) snprintf(out + n, 5, "\\x%02x", s[j]);
                        else
                                out[n++] = (char) s[j];
                i += k;
        }
        out[n] = 0;
        *ret = out;
        return 0;
}

/* Key, stand-in, and whatever reads like a credential. */
static int scrub_all(const Provider *provider, const char *data, size_t size, char **ret, size_t *ret_size) {
        _cleanup_free_ char *keyless = NULL;
        char *clean;
        size_t n;

        int r = scrub_value(provider->key, data, size, &keyless, &n);
        if (r >= 0)
                r = scrub_value(provider->stand_in, keyless, n, &clean, &n);
        if (r < 0)
                return r;
        *ret_size = scrub_credentials(clean, n);
        *ret = clean;
        return 0;
}

static int decode(Slice path, char **ret, size_t *ret_size) {
        char *text = malloc(path.size + 1);

        if (!text)
                return -ENOMEM;
        if (path.size > 0)
                memcpy(text, path.data, path.size);
        *ret_size = decode_once(text, path.size);
        *ret = text;
        return 0;
}

int receipt_path(const Provider *provider, Slice path, char **ret) {
        _cleanup_free_ char *decoded = NULL, *clean = NULL;
        size_t size, n;

        path.size = before_query(path.data, path.size);
        int r = decode(path, &decoded, &size);
        if (r >= 0)
                r = scrub_all(provider, decoded, before_query(decoded, size), &clean, &n);
        return r < 0 ? r : escape_and_cut(clean, n, ret);
}

int receipt_scrub_raw_path(const Provider *provider, Slice path, char **ret, size_t *ret_size) {
        _cleanup_free_ char *raw = NULL, *decoded = NULL, *again = NULL;
        size_t size, decoded_size, n;

        if (before_query(path.data, path.size) < path.size)
                return -EPERM;
        int r = scrub_all(provider, path.data, path.size, &raw, &size);
        if (r >= 0)
                r = decode((Slice) {raw, size}, &decoded, &decoded_size);
        if (r >= 0)
                r = scrub_all(provider, decoded, decoded_size, &again, &n);
        if (r < 0)
                return r;
        if (n != decoded_size || memcmp(again, decoded, n) != 0)
                return -EPERM;
        *ret = TAKE_PTR(raw);
        *ret_size = size;
        return 0;
}

int receipt_format(const Receipt *receipt, const char *session, usec_t ended, usec_t duration, uint64_t unrecorded, char **ret, size_t *ret_size) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *path = NULL;

        int r = receipt_path(receipt->provider, receipt->path, &path);
        if (r < 0)
                return r;
        json_open_object(&w, NULL);
        json_add_u64(&w, "ended", ended);
        json_add_string(&w, "session", session);
        json_add_string(&w, "provider", receipt->provider->id);
        json_add_string(&w, "credential", receipt->provider->credential_name);
        json_add_string(&w, "host", receipt->provider->host.name);
        json_add_string(&w, "method", receipt->method);
        json_add_string(&w, "path", path);
        json_add_u64(&w, "query", receipt->query_size);
        json_add_u64(&w, "status", receipt->status);
        json_add_u64(&w, "duration", duration);
        json_add_u64(&w, "up", receipt->bytes_up);
        json_add_u64(&w, "down", receipt->bytes_down);
        json_add_string(&w, "outcome", receipt_outcome_to_string(receipt->outcome));
        if (receipt->tokens > 0)
                json_add_u64(&w, "tokens", receipt->tokens);
        if (unrecorded > 0)
                json_add_u64(&w, "unrecorded", unrecorded);
        json_close_object(&w);
        return json_writer_finish(&w, ret, ret_size);
}
