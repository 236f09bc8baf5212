/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "basic/utf8.h"
#include "broker/provider.h"

#define ROUTE "/provider/"

int provider_split(Slice path, Slice *ret_id, Slice *ret_rest) {
        size_t n = STRLEN(ROUTE), i = n;

        if (path.size < n || memcmp(path.data, ROUTE, n) != 0)
                return -ENOENT;
        while (i < path.size && path.data[i] != '/' && path.data[i] != '?')
                i++;
        *ret_id = (Slice) {path.data + n, i - n};
        *ret_rest = (Slice) {path.data + i, path.size - i};
        return 0;
}

static int octet(const char *s, size_t size) {
        if (size < 3 || s[0] != '%' || ascii_hex_value(s[1]) < 0 || ascii_hex_value(s[2]) < 0)
                return -1;
        return ascii_hex_value(s[1]) * 16 + ascii_hex_value(s[2]);
}

/* Decodes once, in place; -EBADMSG for a '%' that begins no octet. */
static ssize_t decode(char *text, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                int c = octet(text + i, size - i);
                if (text[i] == '%' && c < 0)
                        return -EBADMSG;
                text[n++] = c < 0 ? text[i] : (char) c;
                i += c < 0 ? 0 : 2;
        }
        return (ssize_t) n;
}

/* Decodes in place until nothing is left that decodes: what a decoded octet completes is looked at again where it stands. */
static size_t decode_wholly(char *text, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                text[n++] = text[i];
                for (int c; n >= 3 && (c = octet(text + n - 3, 3)) >= 0; n -= 2)
                        text[n - 3] = (char) c;
        }
        return n;
}

static const char *decoded_problem(const char *text, size_t size) {
        for (size_t i = 0, n; i < size; i += n) {
                /* Who decodes "%c0%af" loosely gets a slash. */
                n = utf8_sequence((const unsigned char *) text + i, size - i);
                if (n == 0)
                        return "the path is not UTF-8";
                if (text[i] == '/' || text[i] == '\\')
                        return "the path has an encoded slash or a backslash";
                if (strchr("?#;", text[i]) && text[i])
                        return "the path has an encoded ?, # or ;, at which it ends for who decodes it first";
                if ((unsigned char) text[i] < 0x20 || text[i] == 0x7f)
                        return "the path has an encoded control character";
        }
        if ((size == 1 && text[0] == '.') || (size == 2 && text[0] == '.' && text[1] == '.'))
                return "the path has a . or .. segment";
        return NULL;
}

static const char *segment_problem(const char *segment, size_t size) {
        const char *problem;

        if (size == 0)
                return "the path has an empty segment";
        if (memchr(segment, ';', size))
                return "the path has ; parameters";
        if (!memchr(segment, '%', size))
                return decoded_problem(segment, size);

        _cleanup_free_ char *text = malloc(size);
        if (!text)
                return "the path could not be judged: out of memory";
        memcpy(text, segment, size);
        ssize_t n = decode(text, size);
        if (n < 0)
                return "the path has a % that encodes nothing";
        problem = decoded_problem(text, (size_t) n);
        if (problem || !memchr(text, '%', (size_t) n))
                return problem;
        /* Some servers decode twice, or as often as there is something to decode. What then decodes no more is an ordinary percent sign. */
        return decoded_problem(text, decode_wholly(text, (size_t) n));
}

const char *provider_path_problem(Slice rest) {
        const char *mark = rest.size > 0 ? memchr(rest.data, '?', rest.size) : NULL;
        size_t size = mark ? (size_t) (mark - rest.data) : rest.size;

        for (size_t i = 0; i < rest.size; i++) {
                if (rest.data[i] == '#')
                        return "the path has a fragment";
                if (rest.data[i] <= ' ' || rest.data[i] >= 0x7f)
                        return "the path has characters that must be encoded";
        }
        if (size == 0 || (size == 1 && rest.data[0] == '/'))
                return NULL;
        if (rest.data[0] != '/')
                return "the path does not begin with a slash";
        for (size_t at = 1; at <= size;) {
                const char *slash = at < size ? memchr(rest.data + at, '/', size - at) : NULL;
                size_t end = slash ? (size_t) (slash - rest.data) : size;
                const char *problem = segment_problem(rest.data + at, end - at);
                if (problem)
                        return problem;
                at = end + 1;
        }
        return NULL;
}

static bool same_name(Slice name, const char *other) {
        if (name.size != strlen(other))
                return false;
        for (size_t i = 0; i < name.size; i++)
                if ((name.data[i] == '_' ? '-' : ascii_lower(name.data[i])) != other[i])
                        return false;
        return true;
}

bool provider_drops_field(const Provider *p, Slice name) {
        static const char *const dropped[] = {
                "authorization", "x-api-key", "accept-encoding",
                /* In UTF-16 nobody finds the key: ASP.NET Core answers in it when asked. */
                "accept-charset",
                /* Two ranges of an answer that quotes the key would each hold a part of it, which nobody finds: the whole is asked for. Old
                 * spellings, which Apache httpd still reads, and RFC 3229's, which compresses as well. */
                "range", "if-range", "request-range", "a-im",
                /* Read by front ends as the host to go to, and by what is behind them. */
                "forwarded", "x-forwarded-host", "x-forwarded-server", "x-original-host", "x-host",
                /* Read by Rack, Symfony, Express middleware, ASP.NET, WCF and OData as the method to run. */
                "x-http-method-override", "x-method-override", "x-http-method", "x-original-method",
                /* Read by IIS rewriting, Zend, Symfony and several gateways as the path to run. */
                "x-original-url", "x-rewrite-url", "x-original-uri", "x-rewrite-uri", "x-override-url", "x-http-path-override",
                "x-original-path", "x-forwarded-uri", "x-forwarded-path", "x-forwarded-method", "x-envoy-original-path",
        };

        if (p->header && ascii_case_equal(name.data, name.size, p->header))
                return true;
        for (size_t i = 0; i < ELEMENTSOF(dropped); i++)
                if (same_name(name, dropped[i]))
                        return true;
        return false;
}
