/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/secret-source.h"

#define SECRET_FILE_MAX (64U * 1024U)

void secret_source_done(SecretSource *s) {
        s->value = secret_free(s->value);
        s->name = mfree(s->name);
        s->kind = SECRET_SOURCE_NONE;
}

bool systemd_credential_name_valid(const char *s) {
        size_t n = strlen(s);

        for (size_t i = 0; i < n; i++)
                if (!ascii_alpha(s[i]) && !ascii_digit(s[i]) && !strchr("_.-", s[i]))
                        return false;
        return n > 0 && n <= 255 && s[0] != '.';
}

const char *secret_form_problem(SecretForm form, const char *data, size_t size) {
        if (size == 0)
                return "is empty";
        if (size > SECRET_FILE_MAX)
                return "is larger than 64 KiB";
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char) data[i];
                if (c > 0x20 && c < 0x7f)
                        continue;
                if (form == SECRET_ONE_LINE)
                        return "holds a character other than printable ASCII, or a space or more than one line";
                if (c == 0 || (c < 0x20 && c != '\n' && c != '\r' && c != '\t'))
                        return "holds control characters";
        }
        return NULL;
}

/* Not followed further than the last component's own link: an administrator may link a key to its place, and whoever can change the
 * link's directory can change the key as well. */
static int open_secret_file(const char *what, const char *path, char **ret_problem) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0) {
                int error = errno;
                return problem_set(ret_problem, "%s cannot be opened: %s", what, strerror(error));
        }
        if (!S_ISREG(st.st_mode))
                return problem_set(ret_problem, "%s is not a regular file", what);
        if (st.st_mode & 0007)
                return problem_set(ret_problem, "%s is open to every account (mode %04o): chmod o-rwx it", what,
                                   (unsigned) (st.st_mode & 07777));
        return TAKE_FD(fd);
}

static int read_open_file(int fd, const char *what, SecretForm form, Secret **ret, char **ret_problem) {
        char *text;
        size_t size;

        int r = read_fd_full(fd, SECRET_FILE_MAX, &text, &size);
        if (r < 0)
                return problem_set(ret_problem, "%s cannot be read: %s", what, r == -EFBIG ? "it is larger than 64 KiB" : strerror(-r));

        size_t used = size;
        if (form == SECRET_ONE_LINE && used > 0 && text[used - 1] == '\n')
                used--;
        const char *problem = secret_form_problem(form, text, used);
        if (problem)
                r = problem_set(ret_problem, "%s %s", what, problem);
        else
                r = secret_new(text, used, ret);
        secret_wipe(text, size);
        free(text);
        return r;
}

static int read_secret(const char *what, const char *path, SecretForm form, Secret **ret, char **ret_problem) {
        _cleanup_close_ int fd = open_secret_file(what, path, ret_problem);

        return fd < 0 ? fd : read_open_file(fd, what, form, ret, ret_problem);
}

int secret_file_check(const char *what, const char *path, SecretForm form, char **ret_problem) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        _cleanup_(secret_freep) Secret *secret = NULL;

        return fd < 0 ? -errno : read_open_file(fd, what, form, &secret, ret_problem);
}

int secret_source_resolve(const SecretSource *s, SecretForm form, const char *credentials_directory, Secret **ret,
                          char **ret_problem) {
        _cleanup_free_ char *what = NULL, *path = NULL;

        switch (s->kind) {
        case SECRET_SOURCE_INLINE:
                return secret_new(secret_data(s->value), secret_size(s->value), ret);
        case SECRET_SOURCE_FILE:
                if (asprintf(&what, "the secret file %s", s->name) < 0)
                        return TAKE_PTR(what), -ENOMEM;
                return read_secret(what, s->name, form, ret, ret_problem);
        case SECRET_SOURCE_SYSTEMD_CREDENTIAL:
                if (!credentials_directory || credentials_directory[0] != '/')
                        return problem_set(ret_problem,
                                           "the systemd credential %s cannot be read: systemd gave no credentials (is LoadCredential= "
                                           "in the unit?)",
                                           s->name);
                if (asprintf(&what, "the systemd credential %s", s->name) < 0)
                        return TAKE_PTR(what), -ENOMEM;
                if (asprintf(&path, "%s/%s", credentials_directory, s->name) < 0)
                        return TAKE_PTR(path), -ENOMEM;
                if (access(path, F_OK) < 0 && errno == ENOENT)
                        return problem_set(ret_problem,
                                           "%s was not given to errandd when it started: keys_NAME is the file NAME in /etc/errand/credentials, "
                                           "others are those of LoadCredential= in the unit; when it is there, restart errandd.service", what);
                return read_secret(what, path, form, ret, ret_problem);
        case SECRET_SOURCE_NONE:
                break;
        }
        return -ENOENT;
}
