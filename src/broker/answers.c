/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/answers.h"

static const AnswerWords words[_ANSWER_MAX] = {
        [ANSWER_MALFORMED] = {400, "Bad Request", NULL, NULL, true},
        [ANSWER_NOT_PROXIED] = {400, "Bad Request",
                                "this is a session's proxy: it takes CONNECT host:port, http:// addresses and its provider routes",
                                NULL, false},
        [ANSWER_SCHEME] = {400, "Bad Request", "only http:// can be asked for in absolute form; use CONNECT for https", NULL,
                           false},
        [ANSWER_CONNECT_BODY] = {400, "Bad Request", "CONNECT has no body", NULL, true},
        [ANSWER_HOST_HEADER] = {400, "Bad Request", "the Host header is missing, repeated, or names another host than the target",
                                NULL, false},
        [ANSWER_AUTHORITY] = {400, "Bad Request", NULL, NULL, false},
        [ANSWER_CREDENTIAL] = {407, "Proxy Authentication Required",
                               "this proxy wants the credential that the session's http_proxy and https_proxy variables carry",
                               "Proxy-Authenticate: Basic realm=\"errand\"\r\n", false},
        [ANSWER_PORT] = {403, "port not allowed", "this port is not one that sessions may reach; sandbox.egressPorts names them",
                         NULL, false},
        [ANSWER_NOT_GRANTED] = {403, "not on the egress allowlist or granted", NULL, NULL, false},
        [ANSWER_NOT_PUBLIC] = {403, "not a public host", NULL, NULL, false},
        [ANSWER_NOT_RESOLVED] = {502, "the name did not resolve", NULL, NULL, false},
        [ANSWER_RESOLVE_TIMEOUT] = {504, "the name did not resolve in time", NULL, NULL, false},
        [ANSWER_UNREACHABLE] = {502, "upstream unreachable", NULL, NULL, false},
        [ANSWER_HEAD_TIMEOUT] = {408, "Request Timeout", "the request did not arrive in time", NULL, true},
        [ANSWER_HEAD_TOO_LARGE] = {431, "Request Header Fields Too Large", "the request head is too large", NULL, true},
        [ANSWER_TOO_MANY] = {503, "Service Unavailable", "too many requests of this session at once", NULL, true},
        [ANSWER_GRANT_NOT_RECORDED] = {503, "Service Unavailable", "the use of the grant could not be recorded; try again later",
                                       NULL, false},
        [ANSWER_INTERNAL] = {500, "Internal Server Error", "out of memory", NULL, true},
};

const AnswerWords *answer_words(Answer a) {
        return &words[a];
}

Answer answer_for_dial(DialResult result) {
        switch (result) {
        case DIAL_NOT_RESOLVED:
                return ANSWER_NOT_RESOLVED;
        case DIAL_RESOLVE_TIMEOUT:
                return ANSWER_RESOLVE_TIMEOUT;
        case DIAL_NOT_PUBLIC:
                return ANSWER_NOT_PUBLIC;
        case DIAL_CONNECTED:
        case DIAL_UNREACHABLE:
        case _DIAL_RESULT_MAX:
                break;
        }
        return ANSWER_UNREACHABLE;
}

Socks5Reply answer_to_socks5(Answer a) {
        switch (a) {
        case ANSWER_PORT:
        case ANSWER_NOT_GRANTED:
        case ANSWER_NOT_PUBLIC:
                return SOCKS5_NOT_ALLOWED;
        case ANSWER_NOT_RESOLVED:
        case ANSWER_RESOLVE_TIMEOUT:
                return SOCKS5_HOST_UNREACHABLE;
        case ANSWER_UNREACHABLE:
                return SOCKS5_REFUSED;
        default:
                return SOCKS5_FAILURE;
        }
}

char *answer_not_granted(const Host *host, const char *session) {
        char *text;

        if (asprintf(&text, "%s is not on the egress allowlist or granted; its owner can run: errand grant %s %s", host->name,
                     session, host->name) < 0)
                return NULL;
        return text;
}
