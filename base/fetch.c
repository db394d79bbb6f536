#include "base/fetch.h"

#include <assert.h>
#include <curl/curl.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

#include "base/clock.h"

enum {
    KEEP_HANDLES = 64,      /* idle easy handles and idle connections */
    KEEP_BYTES = 64 * 1024, /* a larger buffer is not kept for the next fetch */
    MAX_HEAD = 256 * 1024,  /* bytes of answer headers */
    CONNECT_MS = 5000,
};

struct fetch {
    struct fetcher *fetcher;
    struct fetch *next, *prev; /* among the busy, or next among the idle */
    CURL *easy;
    struct timer deadline; /* also carries a refusal out of fetch_start */
    fetch_done_fn *fn;
    void *arg;
    size_t max_answer;
    bool too_large;
    struct buf out, lines; /* what curl reads while it sends */
    struct curl_slist *list;
    size_t list_cap;
    struct buf head, body;
    struct header *headers;
    size_t header_count, header_cap;
    bool head_done;
    char why[CURL_ERROR_SIZE];
};

struct fetcher {
    struct loop *loop;
    CURLM *multi;
    struct timer timer;
    struct fetch *busy, *idle;
    size_t idle_count;
};

/* ---- the pool of handles ------------------------------------------------------------------------- */

static void fetch_free(struct fetch *x)
{
    curl_easy_cleanup(x->easy);
    buf_done(&x->out);
    buf_done(&x->lines);
    buf_done(&x->head);
    buf_done(&x->body);
    free(x->list);
    free(x->headers);
    free(x);
}

static struct fetch *fetch_take(struct fetcher *f)
{
    struct fetch *x = f->idle;
    if (x) {
        f->idle = x->next;
        f->idle_count--;
    } else {
        x = mem_new(sizeof *x);
        x->fetcher = f;
        x->easy = curl_easy_init();
        if (!x->easy)
            abort();
    }
    x->prev = NULL;
    x->next = f->busy;
    if (f->busy)
        f->busy->prev = x;
    f->busy = x;
    return x;
}

/* Takes it from curl and from the busy; it stays readable until it is put back. */
static void fetch_detach(struct fetch *x)
{
    struct fetcher *f = x->fetcher;
    timer_clear(f->loop, &x->deadline);
    curl_multi_remove_handle(f->multi, x->easy);
    if (x->prev)
        x->prev->next = x->next;
    else
        f->busy = x->next;
    if (x->next)
        x->next->prev = x->prev;
}

static void buf_reuse(struct buf *b)
{
    if (b->cap > KEEP_BYTES)
        buf_done(b);
    b->n = 0;
}

static void fetch_put_back(struct fetch *x)
{
    struct fetcher *f = x->fetcher;
    if (f->idle_count == KEEP_HANDLES) {
        fetch_free(x);
        return;
    }
    curl_easy_reset(x->easy);
    buf_reuse(&x->out);
    buf_reuse(&x->lines);
    buf_reuse(&x->head);
    buf_reuse(&x->body);
    x->header_count = 0;
    x->too_large = x->head_done = false;
    x->why[0] = '\0';
    x->next = f->idle;
    f->idle = x;
    f->idle_count++;
}

/* ---- the end of a fetch -------------------------------------------------------------------------- */

/* Header lines into slices; only now, when the text does not move any more. */
static void split_head(struct fetch *x)
{
    const char *p = x->head.p, *end = p + x->head.n;
    while (p < end) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        const char *next = line_end ? line_end + 1 : end;
        const char *colon = memchr(p, ':', (size_t)(next - p));
        if (colon && colon > p && *p != ' ' && *p != '\t') {
            const char *v = colon + 1, *v_end = next;
            while (v < v_end && (*v == ' ' || *v == '\t'))
                v++;
            while (v_end > v && strchr(" \t\r\n", v_end[-1]))
                v_end--;
            if (x->header_count == x->header_cap) {
                x->header_cap = x->header_cap ? 2 * x->header_cap : 16;
                x->headers = mem_resize(x->headers, x->header_cap, sizeof *x->headers);
            }
            x->headers[x->header_count++] = (struct header){ { p, (size_t)(colon - p) }, { v, (size_t)(v_end - v) } };
        }
        p = next;
    }
}

static void finish(struct fetch *x, enum fetch_end end, const char *why)
{
    struct fetch_answer a = { .end = end, .why = end == FETCH_ANSWERED ? NULL : why };
    if (end == FETCH_ANSWERED) {
        long status = 0;
        curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        split_head(x);
        a.status = (int)status;
        a.headers = x->headers;
        a.header_count = x->header_count;
        a.body = x->body.n ? (struct slice){ x->body.p, x->body.n } : SLICE("");
    }
    fetch_detach(x);
    x->fn(x->arg, &a);
    fetch_put_back(x);
}

/* No byte of the request left: only then is it sure that the other side did not read it. */
static enum fetch_end failed_end(struct fetch *x)
{
    long sent = 0;
    if (x->too_large)
        return FETCH_TOO_LARGE;
    if (curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK)
        return FETCH_LOST;
    return sent == 0 ? FETCH_NOT_SENT : FETCH_LOST;
}

static void deadline_passed(void *arg)
{
    struct fetch *x = arg;
    finish(x, failed_end(x), "deadline passed");
}

static void refused(void *arg)
{
    finish(arg, FETCH_NOT_SENT, "a line break or NUL in a header or in the method");
}

static void take_finished(struct fetcher *f)
{
    int left;
    CURLMsg *m;
    while ((m = curl_multi_info_read(f->multi, &left))) {
        if (m->msg != CURLMSG_DONE)
            continue;
        struct fetch *x = NULL;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
        CURLcode code = m->data.result;
        if (code == CURLE_OK && !x->too_large)
            finish(x, FETCH_ANSWERED, NULL);
        else
            finish(x, failed_end(x), x->why[0] ? x->why : curl_easy_strerror(code));
    }
}

/* ---- curl on the loop ---------------------------------------------------------------------------- */

static void act(struct fetcher *f, curl_socket_t s, int what)
{
    int running;
    curl_multi_socket_action(f->multi, s, what, &running);
    take_finished(f);
}

struct socket_watch {
    struct fetcher *fetcher;
    curl_socket_t fd;
    struct watch *watch;
};

static void socket_ready(void *arg, uint32_t events)
{
    struct socket_watch *s = arg;
    int what = 0;
    if (events & (EPOLLIN | EPOLLHUP))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    act(s->fetcher, s->fd, what);
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)easy;
    struct fetcher *f = arg;
    struct socket_watch *s = socket_arg;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            curl_multi_assign(f->multi, fd, NULL);
            watch_done(&s->watch);
            free(s);
        }
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    if (s) {
        watch_events(s->watch, events);
        return 0;
    }
    s = mem_new(sizeof *s);
    *s = (struct socket_watch){ .fetcher = f, .fd = fd };
    s->watch = loop_watch(f->loop, fd, events, socket_ready, s);
    curl_multi_assign(f->multi, fd, s);
    return 0;
}

static void timer_came(void *arg)
{
    act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int timer_wanted(CURLM *multi, long ms, void *arg)
{
    (void)multi;
    struct fetcher *f = arg;
    if (ms < 0)
        timer_clear(f->loop, &f->timer);
    else
        timer_set(f->loop, &f->timer, clock_mono_ms() + ms, timer_came, f);
    return 0;
}

struct fetcher *fetcher_new(struct loop *l)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        abort();
    struct fetcher *f = mem_new(sizeof *f);
    f->loop = l;
    f->multi = curl_multi_init();
    if (!f->multi)
        abort();
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
    curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)KEEP_HANDLES);
    return f;
}

void fetcher_free(struct fetcher *f)
{
    if (!f)
        return;
    while (f->busy)
        fetch_cancel(f->busy);
    while (f->idle) {
        struct fetch *x = f->idle;
        f->idle = x->next;
        fetch_free(x);
    }
    curl_multi_cleanup(f->multi);
    timer_clear(f->loop, &f->timer);
    free(f);
    curl_global_cleanup();
}

/* ---- reading the answer -------------------------------------------------------------------------- */

static size_t head_line(char *p, size_t size, size_t n, void *arg)
{
    struct fetch *x = arg;
    n *= size;
    if (n > 5 && memcmp(p, "HTTP/", 5) == 0) { /* a 1xx may have come before: begin again */
        x->head.n = 0;
        x->head_done = false;
        return n;
    }
    if (x->head_done) /* a trailer */
        return n;
    if (n == 0 || *p == '\r' || *p == '\n') {
        x->head_done = true;
        return n;
    }
    if (x->head.n + n > MAX_HEAD) {
        x->too_large = true;
        return 0;
    }
    buf_add(&x->head, p, n);
    return n;
}

static size_t body_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct fetch *x = arg;
    n *= size;
    if (n > x->max_answer - x->body.n) {
        x->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    buf_add(&x->body, p, n);
    return n;
}

/* ---- starting ------------------------------------------------------------------------------------ */

static bool plain(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\r' || s.p[i] == '\n' || s.p[i] == '\0')
            return false;
    return true;
}

static bool headers_have(const struct fetch_request *rq, const char *name)
{
    for (size_t i = 0; i < rq->header_count; i++) {
        struct slice n = rq->headers[i].name;
        if (n.n == strlen(name) && strncasecmp(n.p, name, n.n) == 0)
            return true;
    }
    return false;
}

/* The lines go into one buffer and the list's nodes into one array. curl only reads them. "Name:" takes away a header
 * that curl would add by itself; "Name;" sends one with an empty value. */
static bool set_headers(struct fetch *x, const struct fetch_request *rq)
{
    static const char *const own[] = { "Expect", "Content-Type", "Accept" };
    size_t count = 0, want = rq->header_count + COUNT(own);
    if (x->list_cap < want) {
        x->list = mem_resize(x->list, want, sizeof *x->list);
        x->list_cap = want;
    }
    for (size_t i = 0; i < rq->header_count; i++, count++) {
        struct header h = rq->headers[i];
        if (!plain(h.name) || !plain(h.value) || h.name.n == 0)
            return false;
        buf_add(&x->lines, h.name.p, h.name.n);
        buf_puts(&x->lines, h.value.n ? ": " : ";");
        buf_add(&x->lines, h.value.p, h.value.n);
        buf_add(&x->lines, "", 1);
    }
    for (size_t i = 0; i < COUNT(own); i++)
        if (!headers_have(rq, own[i])) {
            buf_puts(&x->lines, own[i]);
            buf_add(&x->lines, ":", 2);
            count++;
        }
    char *p = x->lines.p;
    for (size_t i = 0; i < count; i++, p += strlen(p) + 1)
        x->list[i] = (struct curl_slist){ p, i + 1 < count ? &x->list[i + 1] : NULL };
    curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, count ? x->list : NULL);
    return true;
}

static void set_method(struct fetch *x, const struct fetch_request *rq)
{
    const char *m = rq->method;
    bool carries = !strcmp(m, "POST") || !strcmp(m, "PUT") || !strcmp(m, "PATCH");
    if (!strcmp(m, "HEAD")) {
        curl_easy_setopt(x->easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (carries || rq->body.n > 0) {
        buf_add(&x->out, rq->body.p, rq->body.n);
        curl_easy_setopt(x->easy, CURLOPT_POST, 1L);
        curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->out.n);
        curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, x->out.n ? x->out.p : "");
    } else {
        curl_easy_setopt(x->easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, m);
}

static void set_times(struct fetch *x, const struct fetch_request *rq, int64_t now)
{
    int64_t left = rq->deadline_ms > now ? rq->deadline_ms - now : 1;
    int64_t connect = rq->connect_ms ? rq->connect_ms : CONNECT_MS;
    curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect < left ? connect : left));
    curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)left + 1000); /* should the loop be held up; ours comes first */
    timer_set(x->fetcher->loop, &x->deadline, rq->deadline_ms, deadline_passed, x);
}

static void set_options(struct fetch *x, const struct fetch_request *rq)
{
    CURL *e = x->easy;
    curl_easy_setopt(e, CURLOPT_PRIVATE, x);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->why);
    curl_easy_setopt(e, CURLOPT_URL, rq->url);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, rq->once ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, rq->once ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, head_line);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, body_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
}

struct fetch *fetch_start(struct fetcher *f, const struct fetch_request *rq, fetch_done_fn *fn, void *arg)
{
    struct fetch *x = fetch_take(f);
    int64_t now = clock_mono_ms();
    x->fn = fn;
    x->arg = arg;
    x->max_answer = rq->max_answer;
    set_options(x, rq);
    set_method(x, rq);
    set_times(x, rq, now);
    if (!plain(slice_of(rq->method)) || !set_headers(x, rq))
        timer_set(f->loop, &x->deadline, now, refused, x);
    else if (curl_multi_add_handle(f->multi, x->easy) != CURLM_OK)
        abort();
    return x;
}

void fetch_cancel(struct fetch *x)
{
    fetch_detach(x);
    fetch_put_back(x);
}

const char *fetch_header(const struct fetch_answer *a, const char *name, size_t *ret_n)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < a->header_count; i++) {
        const struct header *h = &a->headers[i];
        if (h->name.n == n && strncasecmp(h->name.p, name, n) == 0) {
            *ret_n = h->value.n;
            return h->value.p;
        }
    }
    return NULL;
}
