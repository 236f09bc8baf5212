/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/answer-form.h"

const char *answer_form_words(AnswerForm form) {
        static const char *const words[_ANSWER_FORM_MAX] = {
                [ANSWER_FORM_CODED] = "a provider answered compressed though asked not to",
                [ANSWER_FORM_PART] = "a provider answered with a part though asked for the whole",
                [ANSWER_FORM_CHARSET] = "a provider answered in a character set in which its key could not be found",
        };
        return words[form];
}

static bool starts_case(Slice s, const char *prefix) {
        size_t n = strlen(prefix);
        return s.size >= n && ascii_case_equal(s.data, n, prefix);
}

/* Content-Encoding. An empty member of the list says nothing. */
static bool is_coded(Slice value) {
        for (size_t at = 0, end; at < value.size; at = end + 1) {
                const char *comma = memchr(value.data + at, ',', value.size - at);
                end = comma ? (size_t) (comma - value.data) : value.size;
                Slice coding = slice_trim((Slice){value.data + at, end - at});
                if (coding.size > 0 && !ascii_case_equal(coding.data, coding.size, "identity"))
                        return true;
        }
        return false;
}

/* The name behind each "charset=", wherever it stands: whoever reads it may be less strict than RFC 9110. */
static bool is_foreign(Slice type) {
        static const char *const foreign[] = {"utf-16", "utf16", "utf-32", "utf32", "utf-7", "utf7", "ucs", "csucs", "iso-10646", "unicode", "csunicode",
                                              "ibm", "cp037", "ebcdic"};
        const char *const word = "charset";

        for (size_t at = 0; at < type.size; at++) {
                Slice rest = {type.data + at, type.size - at};
                if (!starts_case(rest, word))
                        continue;
                rest = slice_trim((Slice){rest.data + strlen(word), rest.size - strlen(word)});
                if (rest.size == 0 || *rest.data != '=')
                        continue;
                rest = slice_trim((Slice){rest.data + 1, rest.size - 1});
                if (rest.size > 0 && (*rest.data == '"' || *rest.data == '\''))
                        rest = slice_trim((Slice){rest.data + 1, rest.size - 1});
                for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                        if (starts_case(rest, foreign[i]))
                                return true;
        }
        return false;
}

AnswerForm answer_form(const Http1Head *head) {
        if (head->status == 206 || head->status == 226)
                return ANSWER_FORM_PART;
        for (size_t i = 0; i < head->n_fields; i++) {
                Slice name = head->fields[i].name, value = head->fields[i].value;
                if (ascii_case_equal(name.data, name.size, "Content-Encoding") && is_coded(value))
                        return ANSWER_FORM_CODED;
                if (ascii_case_equal(name.data, name.size, "Content-Type") && is_foreign(value))
                        return ANSWER_FORM_CHARSET;
        }
        return ANSWER_FORM_PLAIN;
}
