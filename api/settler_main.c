/* The settler process. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/roles.h"
#include "base/log.h"

static void stop(void *arg)
{
    *(bool *)arg = true;
}

static bool load_key(const char *path, struct key *ret)
{
    switch (key_load(path, ret)) {
    case KEY_OK:
        return true;
    case KEY_NO_FILE:
        (void)fprintf(stderr, "payonce settler: %s cannot be read\n", path);
        return false;
    case KEY_LOOSE_FILE:
        (void)fprintf(stderr, "payonce settler: %s can be read by others; chmod 600 it\n", path);
        return false;
    case KEY_BAD:
        (void)fprintf(stderr, "payonce settler: %s must hold 64 hex digits, a secp256k1 secret key\n", path);
        return false;
    }
    return false;
}

/* The relayer's key pays gas; the refund wallet's, where there is one, pays debts. Both are read here and nowhere else. */
struct keys { struct key relayer, refund; bool has_refund; };

static bool load_keys(struct keys *ret)
{
    const char *relayer = getenv("PAYONCE_RELAYER_KEY_FILE"), *refund = getenv("PAYONCE_REFUND_KEY_FILE");
    if (!relayer) {
        (void)fprintf(stderr, "payonce settler: PAYONCE_RELAYER_KEY_FILE must name the relayer's key file\n");
        return false;
    }
    ret->has_refund = refund != NULL;
    return load_key(relayer, &ret->relayer) && (!refund || load_key(refund, &ret->refund));
}

/* One network, until told to stop. */
static int settle_network(const struct config *c, const struct net *n, const char *conninfo, const struct keys *keys)
{
    bool stopped = false;
    struct loop *loop = loop_new();
    loop_on_stop_signal(loop, stop, &stopped);
    struct fetcher *fetcher = fetcher_new(loop);
    struct db *db = db_open(loop, conninfo, "payonce_settler", 2);
    struct refunds *r = refunds_new(n, c->refunds, c->refund_count, keys->has_refund ? &keys->refund : NULL, &keys->relayer.address);
    struct settler_options o = { loop, db, fetcher, n, &keys->relayer, refunds_turn, r, &stopped };
    log_info("settler.ready", "relayer=%s refund_wallet=%s network=%s", address_lower(&keys->relayer.address).s,
             keys->has_refund ? address_lower(&keys->refund.address).s : "none", n->id);
    bool ok = settler_run(&o);
    refunds_free(r);
    db_free(db);
    fetcher_free(fetcher);
    loop_free(loop);
    return ok ? 0 : 1;
}

/* ---- several networks: a process each, so that an RPC that hangs holds up its own network and no other ---- */

struct crew { pid_t *pid; size_t n, alive; int worst; };

static void tell(const struct crew *crew, int signal)
{
    for (size_t i = 0; i < crew->n; i++)
        if (crew->pid[i] > 0)
            (void)kill(crew->pid[i], signal);
}

/* A network whose chain was replaced ends alone. One that crashed takes the rest with it: whoever watches over us starts all. */
static void reap(struct crew *crew)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (size_t i = 0; i < crew->n; i++)
            if (crew->pid[i] == pid)
                crew->pid[i] = 0;
        crew->alive--;
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        crew->worst = code > crew->worst ? code : crew->worst;
        if (!WIFEXITED(status))
            tell(crew, SIGTERM);
    }
}

static pid_t start_one(const struct config *c, const struct net *n, const char *conninfo, const struct keys *keys, const sigset_t *mask)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, mask, NULL);
    _exit(getppid() == parent ? settle_network(c, n, conninfo, keys) : 1);
}

static int settle_networks(const struct config *c, const char *conninfo, const struct keys *keys)
{
    OWNED pid_t *pids = mem_new(c->net_count * sizeof *pids);
    struct crew crew = { .pid = pids, .n = c->net_count };
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ours, &before);
    for (size_t i = 0; i < c->net_count; i++) {
        pids[i] = start_one(c, &c->nets[i], conninfo, keys, &before);
        crew.alive += pids[i] > 0;
    }
    if (crew.alive < crew.n) {
        crew.worst = 1;
        tell(&crew, SIGTERM);
    }
    while (crew.alive > 0) {
        int signal = sigwaitinfo(&ours, NULL);
        if (signal == SIGCHLD)
            reap(&crew);
        else if (signal > 0)
            tell(&crew, SIGTERM);
    }
    return crew.worst;
}

int settler_main(const struct config *c)
{
    struct keys keys = { 0 };
    struct config_why why = { "" };
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        (void)fprintf(stderr, "payonce settler: %s\n", why.text);
        return 1;
    }
    if (!load_keys(&keys))
        return 2;
    log_open("settler", LOG_INFO);
    int code = c->net_count == 1 ? settle_network(c, &c->nets[0], conninfo, &keys) : settle_networks(c, conninfo, &keys);
    key_wipe(&keys.relayer);
    key_wipe(&keys.refund);
    return code;
}
