/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/base64.h"
#include "basic/text.h"
#include "broker/stand-in.h"

#define AUTHORIZATION "Authorization"
#define X_API_KEY "x-api-key"
#define BASIC_SIZE_MAX 1024U /* a stand-in and a user's name are far shorter */

static bool is_stand_in(const Provider *p, Slice value) {
        return secret_equal(value.data, value.size, secret_data(p->stand_in), secret_size(p->stand_in));
}

/* What follows the scheme and its spaces; false for another scheme. */
static bool after_scheme(Slice value, const char *scheme, Slice *ret) {
        size_t i = strlen(scheme);

        if (value.size <= i || !ascii_case_equal(value.data, i, scheme) || value.data[i] != ' ')
                return false;
        while (i < value.size && value.data[i] == ' ')
                i++;
        *ret = (Slice) {value.data + i, value.size - i};
        return true;
}

/* The password; which user it is said to be of does not matter, since git and its kind put in what they like. */
static bool basic_is_stand_in(const Provider *p, Slice coded) {
        char text[BASIC_SIZE_MAX] = {};

        if (coded.size > sizeof(text))
                return false;
        ssize_t n = base64_decode(coded.data, coded.size, text);
        const char *colon = n > 0 ? memchr(text, ':', (size_t) n) : NULL;
        bool is = colon && is_stand_in(p, (Slice) {colon + 1, (size_t) (text + n - colon) - 1});
        secret_wipe(text, sizeof(text));
        return is;
}

/* One header that may carry it, with a scheme or NULL. */
static StandIn check_header(const Provider *p, const Http1Head *head, const char *name, const char *scheme) {
        size_t n = http1_count(head, name);

        if (n != 1)
                return n == 0 ? STAND_IN_NONE : STAND_IN_SEVERAL;
        Slice value = http1_find(head, name)->value;
        if (scheme && !after_scheme(value, scheme, &value))
                return STAND_IN_SCHEME;
        bool is = p->placement == PLACEMENT_BASIC ? basic_is_stand_in(p, value) : is_stand_in(p, value);
        return is ? STAND_IN_RIGHT : STAND_IN_WRONG;
}

static StandIn check_either(const Provider *p, const Http1Head *head, const char **ret_came) {
        StandIn bearer = check_header(p, head, AUTHORIZATION, "Bearer"), key = check_header(p, head, X_API_KEY, NULL);

        if (bearer == STAND_IN_RIGHT || key == STAND_IN_RIGHT)
                return STAND_IN_RIGHT;
        *ret_came = bearer != STAND_IN_NONE ? AUTHORIZATION : X_API_KEY;
        return bearer != STAND_IN_NONE ? bearer : key;
}

static const char *placed_header(const Provider *p) {
        return p->placement == PLACEMENT_X_API_KEY ? X_API_KEY : p->placement == PLACEMENT_HEADER ? p->header : AUTHORIZATION;
}

StandIn stand_in_check(const Provider *p, const Http1Head *head, const char **ret_came) {
        static const char *const schemes[_PLACEMENT_MAX] = {[PLACEMENT_BEARER] = "Bearer", [PLACEMENT_BASIC] = "Basic"};
        static const char *const others[] = {AUTHORIZATION, X_API_KEY};

        if (p->placement == PLACEMENT_EITHER)
                return check_either(p, head, ret_came);
        *ret_came = placed_header(p);
        StandIn what = check_header(p, head, *ret_came, schemes[p->placement]);
        for (size_t i = 0; what == STAND_IN_NONE && i < ELEMENTSOF(others); i++)
                if (http1_count(head, others[i]) > 0) {
                        *ret_came = others[i];
                        return STAND_IN_OTHER;
                }
        return what;
}

char *stand_in_words(const Provider *p, StandIn what, const char *came) {
        static const char *const findings[_STAND_IN_MAX] = {
                [STAND_IN_OTHER] = " came", [STAND_IN_SEVERAL] = " came more than once", [STAND_IN_SCHEME] = " came with another scheme",
                [STAND_IN_WRONG] = " came with another value",
        };
        static const char *const places[_PLACEMENT_MAX] = {
                [PLACEMENT_BEARER] = "\"Authorization: Bearer\"",
                [PLACEMENT_X_API_KEY] = "\"x-api-key\"",
                [PLACEMENT_BASIC] = "the password of \"Authorization: Basic\"",
                [PLACEMENT_EITHER] = "\"Authorization: Bearer\" or \"x-api-key\"",
        };
        bool named = p->placement == PLACEMENT_HEADER;
        char *text;

        if (asprintf(&text, "this provider takes the session's stand-in as %s%s%s; %s%s", named ? "\"" : places[p->placement], named ? p->header : "",
                     named ? "\"" : "", what != STAND_IN_NONE ? came : named ? "no header came that carries a key" :
                                                                               "neither Authorization nor x-api-key came",
                     what != STAND_IN_NONE ? findings[what] : "") < 0)
                return NULL;
        return text;
}

char *stand_in_challenge(const Provider *p) {
        static const char *const schemes[_PLACEMENT_MAX] = {
                [PLACEMENT_BEARER] = "Bearer", [PLACEMENT_X_API_KEY] = X_API_KEY, [PLACEMENT_BASIC] = "Basic", [PLACEMENT_EITHER] = "Bearer",
        };
        char *text;

        if (asprintf(&text, "WWW-Authenticate: %s realm=\"errand\"\r\n", p->header ?: schemes[p->placement]) < 0)
                return NULL;
        return text;
}
