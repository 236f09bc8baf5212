/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include "bailey/policy-source.h"
#include "bailey/profiles.h"
#include "bailey/resolve.h"
#include "basic/path.h"
#include "basic/text.h"

typedef struct BundledProfile {
        const char *name, *description, *text;
} BundledProfile;

typedef struct FloorRule {
        const char *path;
        PathRights rights;
        bool device;
} FloorRule;

#include "bailey/profiles-data.h"

const char *profile_bundled(const char *name, const char **ret_description) {
        for (size_t i = 0; i < ELEMENTSOF(bundled_profiles); i++)
                if (streq(bundled_profiles[i].name, name)) {
                        if (ret_description)
                                *ret_description = bundled_profiles[i].description;
                        return bundled_profiles[i].text;
                }
        return NULL;
}

const char *profile_bundled_name(size_t index) {
        return index < ELEMENTSOF(bundled_profiles) ? bundled_profiles[index].name : NULL;
}

int profile_new_floor(Layer **ret) {
        _cleanup_(layer_freep) Layer *l = layer_new(PROFILE_FLOOR);

        if (!l)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(bundled_floor); i++) {
                LayerRule *rule = layer_rule(l, bundled_floor[i].path);
                if (!rule)
                        return -ENOMEM;
                rule->rights = bundled_floor[i].rights;
                rule->device = bundled_floor[i].device;
        }
        *ret = TAKE_PTR(l);
        return 0;
}

/* What a file NAME.toml can be called on a command line, and is not a way out of the directory. */
static bool name_valid(const char *s) {
        if (!ascii_alpha(s[0]) && !ascii_digit(s[0]))
                return false;
        for (; *s; s++)
                if (!ascii_alpha(*s) && !ascii_digit(*s) && !strchr("-_.", *s))
                        return false;
        return true;
}

void profile_done(Profile *p) {
        free(p->name);
        free(p->path);
        free(p->text);
        layer_free(p->layer);
        *p = (Profile){};
}

/* 0 with ret->layer NULL after a finding; -ENOENT. */
static int read_own(const ProfileRequest *request, const char *name, Findings *findings, Profile *ret) {
        _cleanup_(policy_source_done) PolicySource source = POLICY_SOURCE_NONE;
        _cleanup_(profile_done) Profile p = {};
        _cleanup_free_ char *called = NULL;
        const char *reason = NULL;

        if (asprintf(&p.path, "%s/profiles/%s.toml", request->config_directory, name) < 0 || asprintf(&called, "profile %s", name) < 0)
                return -ENOMEM;
        p.name = strdup(name);
        if (!p.name)
                return -ENOMEM;
        int r = policy_source_open(p.path, &source);
        if (r == -ENOENT || r == -ENOMEM)
                return r;
        if (r >= 0 && !policy_source_is_own(&source.status, request->account, &reason))
                finding_error(findings, "%s: the profile is not taken: %s", p.path, reason);
        else if (r >= 0)
                r = policy_source_read(&source);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                finding_error(findings, "%s: the profile cannot be read: %s", p.path, r == -EINVAL ? "not a regular file" : strerror(-r));
        else if (!reason) {
                p.text = strdup(source.text);
                r = p.text ? policy_source_parse(&source, p.path, POLICY_PROFILE, request->places, findings, &p.layer) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        if (p.layer) {
                free(p.layer->name);
                p.layer->name = TAKE_PTR(called);
        }
        *ret = p;
        p = (Profile){};
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(((const Profile *) a)->name, ((const Profile *) b)->name);
}

static int add_own(const ProfileRequest *request, const char *file, Findings *findings, Profile **list, size_t *n) {
        const char *suffix = endswith(file, ".toml");
        _cleanup_free_ char *name = suffix ? strndup(file, (size_t) (suffix - file)) : NULL;

        if (!suffix || file[0] == '.')
                return 0;
        if (!name)
                return -ENOMEM;
        if (!name_valid(name) || profile_bundled(name, NULL)) {
                finding_warning(findings, "%s/profiles/%s is not taken: %s", request->config_directory, file,
                                name_valid(name) ? "the name is a bundled profile's; rename it" :
                                                   "a profile's name has only letters, digits, \"-\", \"_\" and \".\"");
                return 0;
        }
        Profile *grown = reallocarray(*list, *n + 1, sizeof(Profile));
        if (!grown)
                return -ENOMEM;
        *list = grown;
        grown[*n] = (Profile){};
        int r = read_own(request, name, findings, &grown[*n]);
        if (r >= 0)
                (*n)++;
        return r == -ENOENT ? 0 : r;
}

int profile_own(const ProfileRequest *request, Findings *findings, Profile **ret, size_t *ret_n) {
        char path[PATH_MAX];
        Profile *list = NULL;
        size_t n = 0;
        int r = 0;

        if (snprintf(path, sizeof(path), "%s/profiles", request->config_directory) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        DIR *d = opendir(path);
        if (!d && errno != ENOENT && errno != ENOTDIR)
                finding_error(findings, "%s: the profiles cannot be read: %s", path, strerror(errno));
        for (const struct dirent *e; d && r >= 0 && (e = readdir(d));)
                r = add_own(request, e->d_name, findings, &list, &n);
        if (d)
                closedir(d);
        if (r < 0) {
                for (size_t i = 0; i < n; i++)
                        profile_done(&list[i]);
                free(list);
                return r;
        }
        if (n > 0)
                qsort(list, n, sizeof(Profile), compare_names);
        *ret = list;
        *ret_n = n;
        return 0;
}

/* Both by name and by where they lead: /usr/bin/x may be a link. */
static bool applies(const Layer *l, const char *target, const ResolvedPath *real) {
        for (char **s = l->applies_to; s && *s; s++) {
                ResolvedPath to = {};
                bool same = streq(*s, target);
                if (!same && path_resolve(*s, &to) >= 0)
                        same = to.error == 0 && streq(to.real, real->real);
                resolved_path_done(&to);
                if (same)
                        return true;
        }
        return false;
}

static int load_applying(const ProfileRequest *request, Findings *findings, Layer **ret) {
        _cleanup_(resolved_path_done) ResolvedPath real = {};
        Profile *list = NULL, *found = NULL;
        size_t n = 0;

        int r = profile_own(request, findings, &list, &n);
        if (r >= 0 && n > 0)
                r = path_resolve(request->target, &real);
        for (size_t i = 0; i < n && r >= 0; i++) {
                if (!list[i].layer || !applies(list[i].layer, request->target, &real))
                        continue;
                if (found)
                        finding_error(findings, "%s and %s both apply to %s; name the one that is meant with --profile", found->path,
                                      list[i].path, request->target);
                found = &list[i];
        }
        if (r >= 0 && found)
                *ret = TAKE_PTR(found->layer);
        for (size_t i = 0; i < n; i++)
                profile_done(&list[i]);
        free(list);
        return r;
}

static void unknown(const ProfileRequest *request, const char *name, Findings *findings) {
        const char *best = "";
        unsigned distance = UINT_MAX;

        for (size_t i = 0; i < ELEMENTSOF(bundled_profiles); i++) {
                unsigned d = string_distance(name, bundled_profiles[i].name);
                if (d < distance) {
                        distance = d;
                        best = bundled_profiles[i].name;
                }
        }
        if (string_distance_near(name, distance))
                finding_error(findings, "there is no profile \"%s\"; did you mean \"%s\"?", name, best);
        else
                finding_error(findings, "there is no profile \"%s\", and no %s/profiles/%s.toml; see bailey profile list", name,
                              request->config_directory, name);
}

int profile_load(const ProfileRequest *request, const char *name, Findings *findings, Layer **ret) {
        _cleanup_(profile_done) Profile own = {};
        _cleanup_free_ char *called = NULL;
        const char *text;

        if (!name)
                return request->target ? load_applying(request, findings, ret) : 0;
        if (streq(name, PROFILE_FLOOR))
                return 0;
        if (!name_valid(name)) {
                finding_error(findings, "\"%s\" is not a profile's name; see bailey profile list", name);
                return 0;
        }
        text = profile_bundled(name, NULL);
        if (text) {
                if (asprintf(&called, "profile %s", name) < 0)
                        return -ENOMEM;
                return policy_file_parse(&(PolicyText){.text = text, .size = strlen(text), .name = called, .kind = POLICY_BUNDLED,
                                                       .places = request->places}, findings, ret);
        }
        int r = read_own(request, name, findings, &own);
        if (r == -ENOENT) {
                unknown(request, name, findings);
                return 0;
        }
        *ret = TAKE_PTR(own.layer);
        return r;
}
