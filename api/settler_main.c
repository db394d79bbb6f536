/* The settler process: the relayer's key is read here and nowhere else. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/roles.h"
#include "base/log.h"
#include "settle/settler.h"

static void stop(void *arg)
{
    *(bool *)arg = true;
}

static bool load_key(struct key *ret)
{
    const char *path = getenv("PAYONCE_RELAYER_KEY_FILE");
    if (!path) {
        (void)fprintf(stderr, "payonce settler: PAYONCE_RELAYER_KEY_FILE must name the relayer's key file\n");
        return false;
    }
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

/* One network, until told to stop. */
static int settle_network(const struct net *n, const char *conninfo, const struct key *relayer)
{
    bool stopped = false;
    struct loop *loop = loop_new();
    loop_on_stop_signal(loop, stop, &stopped);
    struct fetcher *fetcher = fetcher_new(loop);
    struct db *db = db_open(loop, conninfo, "payonce_settler", 2);
    struct settler_options o = { loop, db, fetcher, n, relayer, &stopped };
    log_info("settler.ready", "relayer=%s network=%s", address_lower(&relayer->address).s, n->id);
    bool ok = settler_run(&o);
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

static pid_t start_one(const struct net *n, const char *conninfo, const struct key *relayer, const sigset_t *mask)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, mask, NULL);
    _exit(getppid() == parent ? settle_network(n, conninfo, relayer) : 1);
}

static int settle_networks(const struct config *c, const char *conninfo, const struct key *relayer)
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
        pids[i] = start_one(&c->nets[i], conninfo, relayer, &before);
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
    struct key relayer;
    struct config_why why = { "" };
    OWNED char *conninfo = config_conninfo(c, &why);
    if (!conninfo) {
        (void)fprintf(stderr, "payonce settler: %s\n", why.text);
        return 1;
    }
    if (!load_key(&relayer))
        return 2;
    log_open("settler", LOG_INFO);
    int code = c->net_count == 1 ? settle_network(&c->nets[0], conninfo, &relayer) : settle_networks(c, conninfo, &relayer);
    key_wipe(&relayer);
    return code;
}
