/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/text.h"
#include "broker/http1.h"
#include "broker/keys.h"
#include "broker/limits.h"
#include "shared/json-check.h"

#define KEYS_DEPTH_MAX 3U

/* Text that json_check() found good, so a cursor's moves need no checks of syntax, only of types. */
typedef struct Cursor {
        char *p;
        char *end;
} Cursor;

Keys *keys_free(Keys *k) {
        if (!k)
                return NULL;
        secret_free(k->credential);
        for (size_t i = 0; i < k->n_entries; i++) {
                secret_free(k->entries[i].key);
                secret_free(k->entries[i].stand_in);
        }
        free(k->entries);
        return mfree(k);
}

KeysEntry *keys_find(Keys *k, const char *id) {
        for (size_t i = 0; i < k->n_entries; i++)
                if (streq(k->entries[i].id, id))
                        return k->entries + i;
        return NULL;
}

bool provider_id_valid(const char *id, size_t size) {
        if (size == 0 || size > PROVIDER_ID_MAX)
                return false;
        for (size_t i = 0; i < size; i++)
                if (!(id[i] >= 'a' && id[i] <= 'z') && !ascii_digit(id[i]) && id[i] != '-')
                        return false;
        return true;
}

static int refuse(char **ret_problem, const char *text) {
        if (ret_problem && asprintf(ret_problem, "keys: %s", text) < 0)
                *ret_problem = NULL;
        return -EBADMSG;
}

static void skip_space(Cursor *c) {
        while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
                c->p++;
}

static unsigned read_unit(const char *p) {
        unsigned value = 0;

        for (size_t i = 0; i < 4; i++) {
                char c = ascii_lower(p[i]);
                value = value << 4 | (unsigned) (ascii_digit(c) ? c - '0' : c - 'a' + 10);
        }
        return value;
}

/* Decodes the escapes in place; the text only shrinks. What \u names beyond ASCII stands as 0xff: no member takes such a byte. */
static Slice read_string(Cursor *c) {
        char *in = c->p + 1, *out = in, *start = in;
        char *close = in;

        while (*close != '"')
                close += *close == '\\' ? 2 : 1;
        while (in < close) {
                static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
                if (*in != '\\') {
                        *out++ = *in++;
                } else if (in[1] == 'u') {
                        unsigned unit = read_unit(in + 2);
                        *out++ = unit < 0x80 ? (char) unit : (char) 0xff;
                        in += 6;
                } else {
                        *out++ = to[strchr(from, in[1]) - from];
                        in += 2;
                }
        }
        c->p = close + 1;
        skip_space(c);
        return (Slice){start, (size_t) (out - start)};
}

static bool enter_object(Cursor *c) {
        if (*c->p != '{')
                return false;
        c->p++;
        skip_space(c);
        return true;
}

/* True with the member's name, and the cursor at its value; false past the object's end. */
static bool next_member(Cursor *c, Slice *ret_name) {
        if (*c->p == ',') {
                c->p++;
                skip_space(c);
        }
        if (*c->p == '}') {
                c->p++;
                skip_space(c);
                return false;
        }
        *ret_name = read_string(c);
        c->p++; /* the colon */
        skip_space(c);
        return true;
}

static bool all_bytes(Slice s, size_t max, bool key) {
        if (s.size == 0 || s.size > max)
                return false;
        for (size_t i = 0; i < s.size; i++) {
                char b = s.data[i];
                if (key ? b <= 0x20 || b >= 0x7f : !ascii_alpha(b) && !ascii_digit(b) && b != '-' && b != '_')
                        return false;
        }
        return true;
}

static int read_secret(Cursor *c, bool key, Secret **ret, char **ret_problem) {
        if (*ret)
                return refuse(ret_problem, "a member is there twice");
        if (*c->p != '"')
                return refuse(ret_problem, "a key, a stand-in or the credential is not a string");
        Slice value = read_string(c);
        if (!all_bytes(value, key ? KEY_SIZE_MAX : CREDENTIAL_SIZE_MAX, key))
                return refuse(ret_problem, key ? "a key is not 1 to 4096 bytes of visible ASCII"
                                               : "the credential or a stand-in is not 1 to 256 letters, digits, '-' and '_'");
        return secret_new(value.data, value.size, ret);
}

static int read_entry(Cursor *c, KeysEntry *e, char **ret_problem) {
        Slice name;

        if (!enter_object(c))
                return refuse(ret_problem, "a provider is not an object");
        while (next_member(c, &name)) {
                bool key = slice_is(name, "key");
                if (!key && !slice_is(name, "standIn"))
                        return refuse(ret_problem, "a provider has a member other than \"key\" and \"standIn\"");
                int r = read_secret(c, key, key ? &e->key : &e->stand_in, ret_problem);
                if (r < 0)
                        return r;
        }
        if (!e->key || !e->stand_in)
                return refuse(ret_problem, "a provider lacks its \"key\" or its \"standIn\"");
        /* Whoever mixed them up would hand the key to the session. */
        if (secret_equal(secret_data(e->key), secret_size(e->key), secret_data(e->stand_in), secret_size(e->stand_in)))
                return refuse(ret_problem, "a provider's \"key\" and \"standIn\" are the same");
        return 0;
}

static int read_providers(Cursor *c, Keys *k, char **ret_problem) {
        Slice id;

        if (k->entries)
                return refuse(ret_problem, "a member is there twice");
        k->entries = calloc(PROVIDERS_MAX, sizeof(KeysEntry));
        if (!k->entries)
                return -ENOMEM;
        if (!enter_object(c))
                return refuse(ret_problem, "\"providers\" is not an object");
        while (next_member(c, &id)) {
                if (k->n_entries == PROVIDERS_MAX)
                        return refuse(ret_problem, "\"providers\" names too many");
                if (!provider_id_valid(id.data, id.size))
                        return refuse(ret_problem, "a provider's id is not 1 to 32 of a-z, 0-9 and '-'");
                KeysEntry *e = k->entries + k->n_entries;
                memcpy(e->id, id.data, id.size);
                if (keys_find(k, e->id))
                        return refuse(ret_problem, "a provider is there twice");
                k->n_entries++;
                int r = read_entry(c, e, ret_problem);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int parse(char *data, size_t size, Keys *k, char **ret_problem) {
        Cursor c = {data, data + size};
        Slice name;

        if (json_check(data, size, KEYS_DEPTH_MAX, NULL) < 0)
                return refuse(ret_problem, "the content is not the JSON that is expected");
        skip_space(&c);
        if (!enter_object(&c))
                return refuse(ret_problem, "the content is not a JSON object");
        while (next_member(&c, &name)) {
                int r;
                if (slice_is(name, "credential"))
                        r = read_secret(&c, false, &k->credential, ret_problem);
                else if (slice_is(name, "providers"))
                        r = read_providers(&c, k, ret_problem);
                else
                        r = refuse(ret_problem, "there is a member other than \"credential\" and \"providers\"");
                if (r < 0)
                        return r;
        }
        return k->credential ? 0 : refuse(ret_problem, "\"credential\" is missing");
}

/* Sealed, so that nothing can be truncated under the reader. */
static int read_fd(int fd, char **ret, size_t *ret_size, char **ret_problem) {
        int r = memfd_read_sealed(fd, KEYS_SIZE_MAX, ret, ret_size);

        if (r == -EINVAL)
                return refuse(ret_problem, "the descriptor is not a memfd sealed against writing, shrinking and growing");
        return r == -E2BIG ? refuse(ret_problem, "the content is larger than 64 KiB") : r;
}

int keys_read(int fd, Keys **ret, char **ret_problem) {
        _cleanup_(keys_freep) Keys *k = calloc(1, sizeof(Keys));
        _cleanup_free_ char *data = NULL;
        size_t size = 0;

        if (!k)
                return -ENOMEM;
        int r = read_fd(fd, &data, &size, ret_problem);
        if (r < 0)
                return r;
        r = parse(data, size, k, ret_problem);
        secret_wipe(data, size);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(k);
        return 0;
}
