/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/size.h"
#include "basic/text.h"
#include "errandd/report.h"

#define WIDTH 78U

static const struct {
        const char *name, *sentence;
} sentences[] = {
        {"namespaces", "host processes, paths that are not granted and network addresses stay visible: this host allows no user namespaces"},
        {"isolation", "host processes and paths that are not granted stay visible: a session is not isolated"},
        {"landlock", "granted paths are held by the mounts alone: this kernel has no Landlock"},
        {"landlock-refer", "files cannot be renamed between directories: this kernel's Landlock is older than ABI 2"},
        {"landlock-truncate", "truncating files is not restricted by Landlock: this kernel's is older than ABI 3"},
        {"landlock-ioctl", "ioctls on devices are not restricted by Landlock: this kernel's is older than ABI 5"},
        {"landlock-scope", "abstract sockets and signals are held by the namespaces alone: this kernel's Landlock is older than ABI 6"},
        {"landlock-network", "TCP ports are not restricted: this kernel's Landlock is older than ABI 4"},
        {"seccomp", "system calls are not filtered: this kernel has no seccomp filters"},
        {"sysfs", "there is no /sys in a session: this host allows no fresh one to be mounted"},
        {"nested-deny", "a path denied inside a granted directory is not protected"},
        {"read-only", "a read-only path inside a writable directory is not protected"},
        {"private-tmp", "/tmp and /dev/shm are not private to a session"},
        {"private-home", "a session's private home is not at the real home's path"},
        {"proxy-net", "a session has no private network: the host's address stays visible"},
        {"loopback-rule", "no packet filter rule can be installed: that the host's loopback is out of reach is left to pasta alone"},
        {"resources", "limits of memory, processes and CPU in a policy are not applied"},
};

const char *report_gap_sentence(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(sentences); i++)
                if (streq(sentences[i].name, name))
                        return sentences[i].sentence;
        return NULL;
}

void report_done(Report *r) {
        r->lines = strv_free(r->lines);
        r->gaps = strv_free(r->gaps);
}

/* Wrapped between words, its further lines indented. */
static int add_wrapped(char ***lines, const char *lead, const char *indent, const char *text) {
        while (*text) {
                size_t room = WIDTH - strlen(lead), n = strlen(text);

                if (n > room) {
                        n = room;
                        while (n > 0 && text[n] != ' ')
                                n--;
                        if (n == 0)
                                n = strcspn(text, " "); /* a word longer than a line */
                }
                if (strv_extend_format(lines, "%s%.*s", lead, (int) n, text) < 0)
                        return -ENOMEM;
                text += n + strspn(text + n, " ");
                lead = indent;
        }
        return 0;
}

_printf_(2, 3) static int add(char ***lines, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *clean = text ? string_escape_control(text) : NULL;

        return clean ? add_wrapped(lines, "  ", "    ", clean) : -ENOMEM;
}

static int add_list(char ***lines, const char *words, char *const *list, bool names_only) {
        _cleanup_free_ char *text = NULL;
        int r = 0;

        if (!list || !*list)
                return 0;
        for (; *list && r >= 0; list++)
                r = string_append(&text, "%s%.*s", text ? ", " : "", (int) (names_only ? strcspn(*list, "=") : strlen(*list)), *list);
        return r < 0 ? r : add(lines, "%s: %s", words, text);
}

static int add_open_network(char ***lines, const char *ports, bool hidden) {
        int r = ports ? add(lines, "sessions reach any host on TCP port %s, the host's own network included, with no broker between; UDP, QUIC and DNS are not "
                            "restricted", ports) : add(lines, "sessions reach nothing: sandbox.egressPorts is empty");
        if (r < 0 || !ports)
                return r;
        return hidden ? add(lines, "sessions see a synthetic address in place of the host's, by pasta")
                      : add(lines, "sessions share the host's network and can read its address, MAC and ARP neighbours");
}

static int add_network(char ***lines, const ConfigSandbox *s, char *const *gaps) {
        char ports[256] = "";
        size_t at = 0;

        if (s->network == NETWORK_NONE)
                return add(lines, "sessions have no network");
        for (size_t i = 0; i < s->n_ports && at < sizeof(ports) - 8; i++)
                at += (size_t) snprintf(ports + at, sizeof(ports) - at, "%s%u", i > 0 ? ", " : "", s->ports[i]);
        if (s->egress.mode == EGRESS_OPEN)
                return add_open_network(lines, s->n_ports > 0 ? ports : NULL, s->hide_host_address && !strv_contains(gaps, "proxy-net"));
        if (strv_contains(s->egress.allow, "*"))
                return add(lines, "sessions reach every public host on port %s, through brokers of their own", s->n_ports > 0 ? ports : "none");
        return add(lines, "sessions reach %zu named hosts and those granted, on port %s, through brokers of their own",
                   strv_length(s->egress.allow), s->n_ports > 0 ? ports : "none");
}

static const struct {
        const char *controller, *limit;
} limits[] = {{"memory", "memory"}, {"cpu", "cpu"}, {"pids", "process"}};

/* "2" or "1.5", of thousandths. */
static const char *format_cpus(uint64_t cpus, char *buffer, size_t size) {
        unsigned rest = (unsigned) (cpus % CONFIG_CPUS_SCALE);
        int digits = 3;

        for (; digits > 0 && rest % 10 == 0; digits--)
                rest /= 10;
        if (digits > 0)
                (void) snprintf(buffer, size, "%llu.%0*u", (unsigned long long) (cpus / CONFIG_CPUS_SCALE), digits, rest);
        else
                (void) snprintf(buffer, size, "%llu", (unsigned long long) (cpus / CONFIG_CPUS_SCALE));
        return buffer;
}

/* What each session is held to by its scope: no limit is named that is not there. */
static int add_limits(const ReportInput *in, Report *r) {
        const ConfigSandbox *s = &in->config->sandbox;
        char text[160] = "", value[SIZE_TEXT_MAX];
        size_t at = 0;

        if (strv_contains(in->controllers, "memory"))
                at += (size_t) snprintf(text, sizeof(text), ", %s of memory", size_exact(s->memory, value));
        if (strv_contains(in->controllers, "cpu"))
                at += (size_t) snprintf(text + at, sizeof(text) - at, ", %s cpus", format_cpus(s->cpus, value, sizeof(value)));
        if (strv_contains(in->controllers, "pids"))
                at += (size_t) snprintf(text + at, sizeof(text) - at, ", %llu processes", (unsigned long long) s->pids);
        return at == 0 ? 0 : add(&r->lines, "each session is held to%s", text + 1);
}

/* A scope without some of the controllers. */
static int add_missing_limits(const ReportInput *in, Report *r) {
        const char *missing[ELEMENTSOF(limits)];
        char text[64] = "";
        size_t n = 0, at = 0;

        for (size_t i = 0; i < ELEMENTSOF(limits); i++)
                if (!strv_contains(in->controllers, limits[i].controller))
                        missing[n++] = limits[i].limit;
        for (size_t i = 0; i < n; i++)
                at += (size_t) snprintf(text + at, sizeof(text) - at, "%s%s", missing[i], i + 1 == n ? "" : i + 2 < n ? ", " : n > 2 ? ", and " : " and ");
        return n == 0 ? 0 : strv_extend_format(&r->gaps, "per-session %s limits are not applied: this host delegates no cgroup controller for them", text);
}

/* Nothing stands between a session and these. */
static int add_real_keys(char ***lines, const ConfigAgent *agent, bool everything) {
        _cleanup_strv_free_ char **ids = NULL;

        for (size_t i = 0; i < agent->n_providers; i++) {
                const ConfigProvider *p = &agent->providers[i];
                if ((everything || !config_provider_brokered(p)) && p->credential.kind != SECRET_SOURCE_NONE && strv_extend(&ids, p->id) < 0)
                        return -ENOMEM;
        }
        return add_list(lines, "sessions HOLD the real keys of providers that are not brokered", ids, false);
}

static int add_each(char ***lines, const char *before, char *const *list) {
        int q = 0;

        for (; list && *list && q >= 0; list++)
                q = add(lines, "%s%s", before, *list);
        return q;
}

static int add_inert(const ReportInput *in, Report *r) {
        _cleanup_strv_free_ char **list = NULL;

        int q = config_add_inert(in->config, in->mode, &list);
        return q < 0 ? q : add_each(&r->lines, "", list);
}

static int add_statements(const ReportInput *in, Report *r) {
        const ConfigSandbox *s = &in->config->sandbox;
        char size[SIZE_TEXT_MAX];

        int q = add_wrapped(&r->lines, "", "  ", in->probe_problem ? "sandbox backend: bailey, which does not work here" : "sandbox backend: bailey");
        if (q >= 0)
                q = add(&r->lines, "sessions run as confined host processes using the host's own tools");
        if (q >= 0 && in->account)
                q = add(&r->lines, "sessions run as account %s%s", in->account, in->one_account ? "" : " unless their project has another owner");
        if (q >= 0)
                q = add(&r->lines, "no single file may exceed %s, enforced as an rlimit", size_exact(s->file_max, size));
        if (q >= 0)
                q = add(&r->lines, "disk use is measured, not capped: a session that takes more than %s is stopped", size_exact(s->disk, size));
        if (q >= 0 && in->scopes)
                q = add_limits(in, r);
        if (q >= 0)
                q = add_network(&r->lines, s, in->gaps);
        if (q >= 0 && s->network != NETWORK_NONE)
                q = add_real_keys(&r->lines, &in->config->agent, s->egress.mode == EGRESS_OPEN);
        if (q >= 0)
                q = add_list(&r->lines, "sessions may read beyond their projects", s->policy_extra.read, false);
        if (q >= 0)
                q = add_list(&r->lines, "sessions may run programs beyond the host's own", s->policy_extra.execute, false);
        if (q >= 0)
                q = add_list(&r->lines, "sessions can CHANGE, outside of their own projects", s->policy_extra.write, false);
        if (q >= 0)
                q = add_list(&r->lines, "sessions have on their PATH", s->path_extra, false);
        if (q >= 0)
                q = add_list(&r->lines, "sessions have the variables", s->env, true);
        if (q >= 0)
                q = add_inert(in, r);
        if (q >= 0)
                q = add_each(&r->lines, "warning: ", in->config->warnings);
        return q < 0 ? q : add_each(&r->lines, "warning: ", in->warnings);
}

/* What the configuration asks for and this version does not do: to accept it in silence would claim a tighter boundary. */
static int add_unsupported(const Config *c, Report *r) {
        return c->github.app.given ? strv_extend_format(&r->gaps, "sessions get no GitHub token: this version mints none for an App") : 0;
}

static int find_gaps(const ReportInput *in, Report *r) {
        int q = 0;

        if (in->probe_problem)
                q = strv_extend_format(&r->gaps, "sessions cannot be confined: %s", in->probe_problem);
        if (q >= 0 && in->scopes)
                q = add_missing_limits(in, r);
        else if (q >= 0)
                q = strv_extend_format(&r->gaps, "per-session memory, cpu, and process limits are not applied: this host reports no cgroup delegation");
        if (q >= 0 && in->shared_account)
                q = strv_extend_format(&r->gaps, "a session and its broker run under one account: the real keys are apart from the agent by the sandbox alone");
        for (char *const *g = in->gaps; g && *g && q >= 0; g++) {
                const char *sentence = report_gap_sentence(*g);
                q = sentence ? strv_extend_format(&r->gaps, "%s", sentence) : strv_extend_format(&r->gaps, "bailey cannot enforce \"%s\" here", *g);
        }
        return q < 0 ? q : add_unsupported(in->config, r);
}

int report_build(const ReportInput *in, Report *ret) {
        Report r = {};

        int q = add_statements(in, &r);
        if (q >= 0)
                q = find_gaps(in, &r);
        if (q >= 0 && r.gaps && !in->config->sandbox.require_full_enforcement)
                q = add(&r.lines, "sandbox.requireFullEnforcement is false: sessions run without what is missing");
        if (q >= 0 && r.gaps)
                q = add(&r.lines, "%zu guarantee(s) cannot be enforced on this host:", strv_length(r.gaps));
        for (char **g = r.gaps; g && *g && q >= 0; g++) {
                _cleanup_free_ char *clean = string_escape_control(*g);
                q = clean ? add_wrapped(&r.lines, "    - ", "      ", clean) : -ENOMEM;
        }
        if (q < 0) {
                report_done(&r);
                return q;
        }
        *ret = r;
        return 0;
}
