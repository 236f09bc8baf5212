/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errandd/config-keys.h"
#include "errandd/config-values.h"
#include "errandd/paths.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define PIB (1024 * 1024 * GIB)
#define HOUR_MSEC UINT64_C(3600000)
#define DAY_MSEC (24 * HOUR_MSEC)
#define COUNT_MAX UINT64_C(999999999999999999) /* json_check() takes no longer integer */

#define AT(field) .offset = offsetof(Config, field)
#define IN_PROVIDER(field) .offset = offsetof(ConfigProvider, field)
#define CHILDREN(table) .children = table, .n_children = ELEMENTSOF(table)
#define WORDS(...) .words = (const char *const[]){__VA_ARGS__, NULL}

static const char *check_token(const char *s) {
        if (strlen(s) < 8)
                return "is shorter than 8 bytes, and so could not be kept out of what sessions report"; /* S224 */
        return secret_form_problem(SECRET_ONE_LINE, s, strlen(s));
}

static const char *check_credential(const char *s) {
        return secret_form_problem(SECRET_ONE_LINE, s, strlen(s));
}

static const char *check_private_key(const char *s) {
        return secret_form_problem(SECRET_TEXT, s, strlen(s));
}

static const char *check_any(const char *s) {
        (void) s;
        return NULL;
}

const ConfigKey config_capability_keys[] = {
        {"method", CONFIG_TEXT, .offset = offsetof(Capability, method), .summary = "A method in upper case, or * for any",
         .check = capability_method_problem, .min = 1, .max = CAPABILITY_METHOD_MAX},
        {"path", CONFIG_TEXT, .offset = offsetof(Capability, path),
         .summary = "What follows the provider's base URL; a * segment matches one segment, ** any number", .check = capability_path_problem,
         .min = 1, .max = CAPABILITY_PATH_MAX},
};
const size_t n_config_capability_keys = ELEMENTSOF(config_capability_keys);

#define BUDGET_KEYS(at, whose)                                                                                                              \
        {"requests", CONFIG_COUNT, at(budgets.requests), .summary = "Provider calls of " whose "; 0 = no budget", .fallback = "0",          \
         .max = COUNT_MAX},                                                                                                                 \
        {"bytes", CONFIG_BYTES, at(budgets.bytes), .summary = "Bytes of the bodies of these calls, both ways; 0 = no budget",               \
         .fallback = "0", .max = PIB},                                                                                                      \
        {"tokens", CONFIG_COUNT, at(budgets.tokens), .summary = "Tokens that the answers to these calls name; 0 = no budget",               \
         .fallback = "0", .max = COUNT_MAX}

static const ConfigKey provider_budgets_keys[] = {BUDGET_KEYS(IN_PROVIDER, "a session to this provider")};

const ConfigKey config_provider_keys[] = {
        {"kind", CONFIG_WORD, IN_PROVIDER(kind), .summary = "The API that the provider speaks", WORDS("anthropic", "openai"), .quiet = true},
        {"baseUrl", CONFIG_TEXT, IN_PROVIDER(base_url), .summary = "Where the provider answers; https, but for a loopback address",
         .check = check_base_url, .max = 2048, .quiet = true},
        {"caFile", CONFIG_PATH, IN_PROVIDER(ca_file), .summary = "Certificates in PEM that are trusted for this provider beside the system's",
         .quiet = true},
        {"credential", CONFIG_SECRET, IN_PROVIDER(credential), .summary = "The key", .check = check_credential},
        {"credentialName", CONFIG_TEXT, IN_PROVIDER(credential_name),
         .summary = "The variable that carries the key, or its stand-in; ID_API_KEY in upper case when left out",
         .check = check_credential_variable, .quiet = true},
        {"placement", CONFIG_WORD, IN_PROVIDER(placement), .summary = "The header in which the key travels; follows kind when left out",
         WORDS(PLACEMENT_WORDS), .quiet = true},
        {"header", CONFIG_TEXT, IN_PROVIDER(header), .summary = "Another header in which the key travels", .check = placement_header_problem,
         .quiet = true},
        {"user", CONFIG_TEXT, IN_PROVIDER(user), .summary = "The name beside a key of placement basic; " PLACEMENT_USER_DEFAULT " when left out",
         .check = placement_user_problem, .quiet = true},
        {"capabilities", CONFIG_CAPABILITIES, .offset = 0, .summary = "The calls that the key may make: a list, or * for every call"},
        {"strictCapabilities", CONFIG_BOOL, IN_PROVIDER(strict_capabilities), .summary = "Refuse calls that capabilities does not name",
         .fallback = "false"},
        {"budgets", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "How much in all for one session's calls to this provider",
         CHILDREN(provider_budgets_keys)},
        {"broker", CONFIG_BOOL, IN_PROVIDER(broker), .summary = "Keep the real key in the session's broker", .fallback = "true"},
        {"extension", CONFIG_TEXT, IN_PROVIDER(extension), .summary = "The agent's extension that registers the provider", .check = check_line,
         .quiet = true},
        {"tools", CONFIG_TEXTS, IN_PROVIDER(tools), .summary = "Tools that use the provider", WORDS("image", "speech", "music"), .max = 3},
        {"models", CONFIG_TEXTS, IN_PROVIDER(models), .summary = "Models of a provider that the agent does not know", .check = check_line,
         .max = 256},
};
const size_t n_config_provider_keys = ELEMENTSOF(config_provider_keys);

static const ConfigKey agent_keys[] = {
        {"command", CONFIG_TEXTS, AT(agent.command), .summary = "The agent's command line", .check = check_argument, .repeats = true, .min = 1,
         .max = 256},
        {"protocol", CONFIG_WORD, AT(agent.protocol), .summary = "How the agent's command is talked to", .fallback = "none", WORDS("none", "acp")},
        {"provider", CONFIG_TEXT, AT(agent.provider), .summary = "The provider that a session uses when none is asked for",
         .check = check_provider_id},
        {"model", CONFIG_TEXT, AT(agent.model), .summary = "The model that a session uses when none is asked for", .check = check_line,
         .max = 256},
        {"providers", CONFIG_PROVIDERS, AT(agent), .summary = "Providers of models, by id"},
};

static const ConfigKey app_keys[] = {
        {"id", CONFIG_COUNT, AT(github.app.id), .summary = "The App's id", .min = 1, .max = COUNT_MAX},
        {"installation", CONFIG_COUNT, AT(github.app.installation), .summary = "The installation's id", .min = 1, .max = COUNT_MAX},
        {"privateKey", CONFIG_SECRET, AT(github.app.private_key), .summary = "The App's private key in PEM", .check = check_private_key,
         .form = SECRET_TEXT},
};

static const ConfigKey github_keys[] = {
        {"token", CONFIG_SECRET, AT(github.token), .summary = "The daemon's own token", .check = check_token},
        {"userName", CONFIG_TEXT, AT(github.user_name), .summary = "The author's name of commits", .check = check_line, .max = 256,
         .quiet = true},
        {"userEmail", CONFIG_TEXT, AT(github.user_email), .summary = "The author's address of commits", .check = check_email, .max = 256,
         .quiet = true},
        {"app", CONFIG_OBJECT, AT(github.app.given), .summary = "A GitHub App whose installation tokens sessions get instead; not in this version",
         CHILDREN(app_keys)},
};

static const ConfigKey egress_keys[] = {
        {"mode", CONFIG_WORD, AT(sandbox.egress.mode), .summary = "Whether connections go through the session's broker",
         .fallback = "proxy", WORDS("proxy", "open")},
        {"allow", CONFIG_HOSTS, AT(sandbox.egress.allow), .summary = "Hosts a session may reach: names, *.name, or * for every host",
         .max = 4096},
        {"allowInternal", CONFIG_INTERNAL, AT(sandbox.egress),
         .summary = "Whether internal addresses written as literals may be reached: all of them, or those listed", .fallback = "false",
         .max = 256},
        {"serverName", CONFIG_WORD, AT(sandbox.egress.server_name),
         .summary = "What becomes of a tunnel whose TLS server name is not the host it was opened for", .fallback = "log",
         WORDS("log", "enforce")},
};

static const ConfigKey incus_keys[] = {
        {"project", CONFIG_TEXT, AT(sandbox.incus.project), .summary = "The Incus project of the sessions", .fallback = "errand",
         .check = check_incus_name, .max = 255},
        {"image", CONFIG_TEXT, AT(sandbox.incus.image), .summary = "The alias of the image that sessions start from",
         .check = check_incus_name, .max = 255},
        {"golden", CONFIG_TEXT, AT(sandbox.incus.golden), .summary = "A stopped instance that is copied for each session instead",
         .check = check_incus_name, .max = 255},
        {"rootSize", CONFIG_BYTES, AT(sandbox.incus.root_size), .summary = "The size of a guest's root disk", .fallback = "20g",
         .min = 256 * MIB, .max = PIB},
        {"guestUid", CONFIG_COUNT, AT(sandbox.incus.guest_uid), .summary = "The agent's uid in the guest", .fallback = "1000", .min = 1,
         .max = UINT32_MAX - 1},
};

static const ConfigKey policy_extra_keys[] = {
        {"read", CONFIG_PATHS, AT(sandbox.policy_extra.read), .summary = "Paths that sessions may read", .max = 1024},
        {"write", CONFIG_PATHS, AT(sandbox.policy_extra.write), .summary = "Paths that sessions may change", .max = 1024},
        {"execute", CONFIG_PATHS, AT(sandbox.policy_extra.execute), .summary = "Paths whose programs sessions may run", .max = 1024},
};

static const ConfigKey sandbox_keys[] = {
        {"backend", CONFIG_WORD, AT(sandbox.backend), .summary = "What confines a session", .fallback = "bailey",
         WORDS("bailey", "podman", "incus")},
        {"requireFullEnforcement", CONFIG_BOOL, AT(sandbox.require_full_enforcement),
         .summary = "Do not start when a guarantee cannot be enforced on this host", .fallback = "true"},
        {"network", CONFIG_WORD, AT(sandbox.network), .summary = "Whether sessions have any network", .fallback = "restricted",
         WORDS("restricted", "none")},
        {"egress", CONFIG_OBJECT, AT(sandbox.egress.given),
         .summary = "Which hosts sessions reach; left out, every public host, and in a block without allow, none", CHILDREN(egress_keys)},
        {"egressPorts", CONFIG_PORTS, AT(sandbox.ports), .summary = "The ports that sessions may reach", .fallback = "443", .max = 64},
        {"image", CONFIG_TEXT, AT(sandbox.image), .summary = "The container image of podman sessions", .check = check_image, .max = 255},
        {"incus", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "Settings of the Incus backend", CHILDREN(incus_keys)},
        {"memory", CONFIG_BYTES, AT(sandbox.memory), .summary = "Memory of a session", .fallback = "4g", .min = 16 * MIB, .max = PIB},
        {"cpus", CONFIG_CPUS, AT(sandbox.cpus), .summary = "Processors of a session; fractions are fine", .fallback = "2", .min = 10,
         .max = 4096 * CONFIG_CPUS_SCALE},
        {"pids", CONFIG_COUNT, AT(sandbox.pids), .summary = "Processes and threads of a session", .fallback = "512", .min = 4,
         .max = 4194304}, /* PID_MAX_LIMIT */
        {"fileMax", CONFIG_BYTES, AT(sandbox.file_max), .summary = "The size of a single file", .fallback = "1g", .min = 4 * KIB, .max = PIB},
        {"tmpSize", CONFIG_BYTES, AT(sandbox.tmp_size), .summary = "The size of a session's /tmp", .fallback = "1g", .min = 64 * KIB,
         .max = PIB},
        {"shmSize", CONFIG_BYTES, AT(sandbox.shm_size), .summary = "The size of a session's /dev/shm", .fallback = "64m", .min = 4 * KIB,
         .max = PIB},
        {"disk", CONFIG_BYTES, AT(sandbox.disk), .summary = "The disk budget of a session, measured rather than enforced", .fallback = "5g",
         .min = MIB, .max = PIB},
        {"diskCheckMs", CONFIG_MSEC, AT(sandbox.disk_check), .summary = "The longest time between two measurements", .fallback = "30000",
         .min = 100, .max = HOUR_MSEC},
        {"gracePeriodMs", CONFIG_MSEC, AT(sandbox.grace_period), .summary = "The time between SIGTERM and SIGKILL when a session is stopped",
         .fallback = "10000", .max = HOUR_MSEC},
        {"hideHostAddress", CONFIG_BOOL, AT(sandbox.hide_host_address),
         .summary = "Hide the host's addresses from bailey sessions in open mode", .fallback = "false"},
        {"policyExtra", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "Paths beyond a session's own", CHILDREN(policy_extra_keys)},
        {"env", CONFIG_ENV, AT(sandbox.env), .summary = "Variables of each session; nothing secret belongs here",
         .check = check_session_variable, .max = 256},
        {"pathExtra", CONFIG_PATHS, AT(sandbox.path_extra), .summary = "Directories on a session's PATH ahead of /usr/bin",
         .check = check_path_element, .max = 64},
};

static const ConfigKey limits_keys[] = {
        {"maxLiveSessions", CONFIG_COUNT, AT(limits.live_sessions), .summary = "Sessions that run at one time", .fallback = "64", .min = 1,
         .max = 4096},
        {"brokersAhead", CONFIG_COUNT, AT(limits.brokers_ahead),
         .summary = "Brokers that wait, without a key, for a session to come, with its scope; its start is shorter then; 0 = none", .fallback = "1", .max = 1},
        {"maxConcurrentTurns", CONFIG_COUNT, AT(limits.concurrent_turns), .summary = "Turns of agents at one time", .fallback = "16",
         .min = 1, .max = 4096},
        {"maxQueueLength", CONFIG_COUNT, AT(limits.queue_length), .summary = "Prompts that wait for a turn", .fallback = "256", .max = 65536},
        {"maxQueueWaitMs", CONFIG_MSEC, AT(limits.queue_wait), .summary = "How long a prompt waits for a turn", .fallback = "600000",
         .min = 1, .max = DAY_MSEC},
};

static const ConfigKey timeouts_keys[] = {
        {"idleMs", CONFIG_MSEC, AT(timeouts.idle), .summary = "A session in which nothing happens, and to which nobody is attached, is stopped after this time; 0 = never",
         .fallback = "0", .max = 30 * DAY_MSEC},
        {"startupMs", CONFIG_MSEC, AT(timeouts.startup), .summary = "How long a session may take to start", .fallback = "60000", .min = 100,
         .max = HOUR_MSEC},
        {"questionMs", CONFIG_MSEC, AT(timeouts.question), .summary = "How long an agent's question waits for an answer",
         .fallback = "600000", .min = 1000, .max = 30 * DAY_MSEC},
        {"abortMs", CONFIG_MSEC, AT(timeouts.abort), .summary = "How long an interrupted turn may take to end", .fallback = "10000",
         .min = 100, .max = HOUR_MSEC},
};

static const ConfigKey budgets_keys[] = {BUDGET_KEYS(AT, "a session")};

const ConfigKey config_keys[] = {
        {"$schema", CONFIG_TEXT, .offset = NO_OFFSET, .summary = "For editors; not read", .check = check_any, .max = 1024, .quiet = true},
        {"projectRoot", CONFIG_PATH, AT(project_root), .summary = "The directory whose direct children are the projects",
         .fallback = "/srv/errand"},
        {"stateDir", CONFIG_PATH, AT(state_dir), .summary = "Where sessions' state, records and receipts are kept",
         .fallback = PATHS_STATE_SYSTEM},
        {"operators", CONFIG_TEXTS, AT(operators), .summary = "Accounts that may do what a session's owner may", .check = check_account,
         .max = 256},
        {"agent", CONFIG_OBJECT, AT(agent.given), .summary = "The agent that sessions run, and its providers", CHILDREN(agent_keys)},
        {"github", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "The GitHub credential of sessions", CHILDREN(github_keys)},
        {"sandbox", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "What a session may do", CHILDREN(sandbox_keys)},
        {"limits", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "How many at one time", CHILDREN(limits_keys)},
        {"timeouts", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "How long at most", CHILDREN(timeouts_keys)},
        {"budgets", CONFIG_OBJECT, .offset = NO_OFFSET, .summary = "How much in all for one session", CHILDREN(budgets_keys)},
};
const size_t n_config_keys = ELEMENTSOF(config_keys);
