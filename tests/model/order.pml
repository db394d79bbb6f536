/* One order: two presenters, gateways and a settler that may die between any two steps, a chain that may include, drop or
 * delay, and a third party that submits whatever it has seen. Work and money are two axes, with the code's own names.
 *
 *   order_decide, order_accept, order_finish, orders_sweep   sql/functions-orders.sql
 *   relay_store, proofs_record, authorization_end            sql/functions-relay.sql
 *   presenter: find, verify, accept, call, finish, wait      api/gate.c, gate_verify.c, gate_work.c, gate_reply.c
 *   settler: prove, submit, resolve, sweep                   settle/prove.c, relay.c, resolve.c, settler.c
 *
 * A SQL function is one atomic step: it decides and writes under lock in one commit. Between two of them anything may happen,
 * the death of the process too. "I4" marks an assertion of the design's invariant 4. FAULT_* plants a fault; run.test.mjs
 * says what each breaks. With SIGNATURE the second presenter shows a second signature over the first one's nonce, with a later
 * deadline; without, a fresh authorization. LIVE: the claim at the end, instead of the assertions alone.
 *
 * Not in here: money that names no order (suspense), batches, fee bumps, reorganisations, endpoints that disagree, two settlers
 * on one wallet, conflicts of identities, free repeats, refunds, pay-first tools, a person's review (lost stays lost). */

mtype = { absent, held, due, sent, released, settled, expired, void };     /* an authorization's row; absent: none */
mtype = { running, done, failed, lost };                                   /* the order's work */
mtype = { signed, broadcast };                                             /* a relay transaction's row */
mtype = { unused, paid, gone };      /* a nonce on the chain; gone: cancelled by the payer, or spent to somebody else */
mtype = { carried, reverted };       /* a transaction on the chain: its Transfer happened, or it was mined without */
mtype = { new, accepted, resent, again, takeover, resend, replay, pay_again, in_flight, in_review, work_failed_paid };

/* ---- time, in ticks of the block time. A nonce may be used while head_time < validBefore. ---- */

#define FIRST_DEADLINE 2
#define END 4
byte head_time, final_time;          /* the final block is at most one tick behind the head */

/* ---- the chain ---- */

#define A 0                          /* the two authorizations, by nonce */
#define B 1
#define OTHER(y) (1 - (y))
mtype used[2] = unused;
bool final_use[2];                   /* that it is gone stands in a final block */
byte shown[2];                       /* the latest validBefore of what strangers saw signed over the nonce; 0: nothing */

/* ---- the database ---- */

bool order;                          /* the order's row, and its columns: */
byte cur;                            /*   authorization_id: which is to pay now */
mtype work;
byte holder;                         /*   whose work_epoch is current: presenter + 1; 0: its process is dead */
bool write;                          /*   side_effect: a write tool, or a read */

mtype st[2] = absent;                /* authorizations.state */
byte valid_before[2], dead_after[2];
byte attempt[2];                     /* whose accept call made or re-armed the row, while it may ask again */
bool debt[2];                        /* what landed goes back */

/* The relayer's transactions in the order of their account nonces; a row whose end is recorded leaves the model. */
mtype tx[2];                         /* relay_transactions.state; 0: no row */
byte tx_of[2];                       /* relay_calls: the authorization in it */
mtype outcome[2];                    /* on the chain: carried, reverted, or 0: not mined */
byte pool[2];                        /* in the nodes' memory: 0, or which bytes */
#define STORED 1                     /*   those that were committed */
#define OTHERS 2

bool ran;                            /* the observer's: the upstream was reached, and may have done it */

#define DEAD(s) ((s) == expired || (s) == void)
#define OVER(s) ((s) == absent || (s) == settled || DEAD(s))
#define MOVING(s) ((s) == held || (s) == due || (s) == sent || (s) == settled)
#define quiet (!order || (work != running && OVER(st[A]) && OVER(st[B])))
#define SALE(y) ((y) == cur && (work == done || work == running))

/* ======== the order's SQL. x: the presented authorization, before: its validBefore, me: the presenter, v: the verdict ======== */

/* What has landed is a sale or a debt, never both, never neither; of a lost order a person has it. */
#define BOOKED(y) (st[y] != settled || work == lost || SALE(y) != debt[y])
inline books() { assert(BOOKED(A) && BOOKED(B)) }                          /* I12 */

/* What has landed pays its order as soon as the current authorization cannot any more. */
inline adopt() {
#ifndef FAULT_IGNORE_LANDED
    if
    :: order && (st[cur] == released || DEAD(st[cur])) && st[OTHER(cur)] == settled ->
        cur = OTHER(cur);
        debt[cur] = (debt[cur] && !SALE(cur))
    :: else
    fi
#endif
}

/* A further signature over a known nonce: the nonce dies with the latest deadline, and lives again if it seemed dead. */
inline signature_keep() {
    if
    :: st[x] != absent && st[x] != settled && st[x] != void && before > dead_after[x] ->
        dead_after[x] = before; shown[x] = before;
        st[x] = (st[x] == expired -> released : st[x])
    :: else
    fi
}

inline authorization_store(state) {
    assert(st[x] == absent);                                               /* I2 */
    st[x] = state; valid_before[x] = before; dead_after[x] = before;
    shown[x] = (shown[x] > before -> shown[x] : before)
}

/* The work's end without an answer: its authorization is not sent. */
inline order_work_end(how) {
    work = how; holder = 0;
    st[cur] = (st[cur] == held -> released : st[cur]);
    adopt();
    debt[cur] = (debt[cur] || (how == failed && st[cur] == settled));
    books()
}

#define usable (head_time + 2 <= before)
#define takeable (usable && (st[x] == absent || st[x] == released || st[x] == held))
#ifdef FAULT_RERUN_LOST_WRITE
#define LOST (takeable -> again : in_review)
#else
#define LOST in_review
#endif
#ifdef FAULT_CHALLENGE_WHILE_SENT
#define UNDECIDED (st[cur] == sent && head_time >= valid_before[cur] -> pay_again : in_flight)
#else
#define UNDECIDED in_flight
#endif

inline order_decide() {
    if
    :: !order -> v = new
    :: order && work == lost -> v = LOST
    :: order && work == done && st[cur] == settled -> v = replay
    :: else ->
        if
        :: st[cur] == settled || st[x] == settled -> v = (work == failed -> work_failed_paid : in_flight)
        :: else ->
            if                                   /* a living lease may seem dead: a heartbeat that came late */
            :: work == running -> v = (write -> in_review : (takeable -> takeover : in_flight))
            :: work == running && holder != 0 -> v = in_flight
            :: work == failed -> v = (takeable -> again : pay_again)
            :: work == done && DEAD(st[cur]) -> v = (takeable -> resend : pay_again)
            :: work == done && !DEAD(st[cur]) -> v = UNDECIDED
            fi
        fi
    fi
}

/* Durable before act: row, order and lease in one commit. */
inline order_accept() {
    signature_keep();
#ifndef FAULT_ACCEPT_WITHOUT_LOCK
    order_decide();
#endif
    if                                           /* our own commit, whose reply was lost */
#ifdef FAULT_REASKED_RUNS_AGAIN
    :: order && attempt[cur] == me + 1 -> v = accepted
#else
    :: order && attempt[cur] == me + 1 && work == running -> v = accepted
    :: order && attempt[cur] == me + 1 && work == done -> v = resent
#endif
    :: else ->
        if
        :: v == new ->
            order = true; cur = x; work = running; holder = me + 1; attempt[x] = me + 1;
            authorization_store(held);
            v = accepted
        :: v == in_review && work == running -> order_work_end(lost)
        :: v == again || v == takeover || v == resend ->
            assert(!(write && work == lost));                              /* I11 */
            if :: st[x] == absent -> authorization_store(held) :: else -> st[x] = held fi;
            if :: x != cur && st[cur] == held -> st[cur] = released :: else fi;
            cur = x; attempt[x] = me + 1;
            if
            :: v == resend -> st[x] = due; v = resent
            :: else -> work = running; holder = me + 1; v = accepted
            fi
        :: else ->                               /* not needed, but signed: stored, never sent by us, watched */
            if :: st[x] == absent -> authorization_store(released) :: else fi
        fi;
        books()
    fi
}

/* done: the answer is kept and the authorization is due, in one commit; unless another one that landed has paid already. */
inline order_finish() {
    if
    :: end == done ->
        work = done; holder = 0;
#ifndef FAULT_IGNORE_LANDED
        st[cur] = (st[cur] == held && st[OTHER(cur)] == settled -> released : st[cur]);
#endif
        adopt();
        st[cur] = (st[cur] == held -> due : st[cur]);
        books()
    :: else -> order_work_end(end)
    fi
}

/* ======== what a presenter is told ======== */

inline challenge() { assert(!order || !(MOVING(st[A]) || MOVING(st[B]))) } /* I5: the one place that a 402 leaves from */
inline not_charged() { assert(!order || !(MOVING(st[A]) || MOVING(st[B]))) }     /* nothing unknown is called failed */
inline answer() { assert(work == done && st[cur] == settled && used[cur] == paid) }             /* I3 */
inline undecided() { assert(!quiet) }                                      /* nobody waits for ever */

/* ======== a presenter, and the gateway that serves it; each has its own ======== */

inline rest() { x = A; before = 0; v = 0; end = 0 }
inline die() { holder = (holder == me + 1 -> 0 : holder); rest() }

/* gate_say */
inline say() {
    if
    :: v == replay -> answer()
    :: v == pay_again -> challenge()
    :: v == in_review -> assert(work == lost || (write && work == running))
    :: v == work_failed_paid -> assert(work == failed && st[cur] == settled)
    :: else -> undecided()                       /* parked, or 409 in flight: asks again in either case */
    fi
}

/* Our terms or the chain object: a balance, a pause, a clock, a cancelled nonce. A 402 is right if the order still wants money. */
inline refuse() {
#ifndef FAULT_CHALLENGE_WITHOUT_ASKING_AGAIN
    order_decide();
    if
    :: v == new || v == again || v == resend -> challenge()
    :: v == takeover -> undecided()
    :: else -> say()
    fi
#else
    challenge()
#endif
}

/* What the request is told that waited for its own order, or for the copy that was there first. */
inline look() {
    if
    :: order && work == done ->
        if
        :: st[cur] == settled -> answer()
        :: DEAD(st[cur]) -> challenge()          /* "unpaid" */
        :: !OVER(st[cur]) -> undecided()
        fi
#ifdef FAULT_FAILED_WHILE_RUNNING
    :: order && work == running -> not_charged() /* a takeover is possible: the copy that ran is thought to have failed */
#endif
    :: order && work == failed && st[cur] != settled -> not_charged()
    :: else
    fi
}

proctype presenter(byte me) {
    byte x, before;
    mtype v, end;
begin:
end_idle:
    atomic {
        if
#ifdef LIVE                                      /* fewer ways, for the time that it takes */
        :: me == 0 -> x = A; before = FIRST_DEADLINE
#else
        :: x = A; before = FIRST_DEADLINE
#endif
        :: me == 1 -> before = END;
#ifndef SIGNATURE
            x = B
#endif
        :: look(); goto begin
        fi;
#ifndef FAULT_FORGET_OTHER_SIGNATURE
        signature_keep();
#endif
        order_decide();
        if
        :: v == new -> challenge()               /* its quote expired */
        :: (v == new || v == resend || v == again || v == takeover) && used[x] == unused && usable ->
            if                                   /* the node's operator sees it; of a second signature see below */
            :: st[x] == absent && shown[x] == 0 -> shown[x] = (x == A -> FIRST_DEADLINE : before)
            :: else
            fi;
            v = 0;
            goto verify
        :: (v == new || v == resend || v == again || v == takeover) && used[x] != paid -> refuse()
        :: v != new && st[x] == absent && usable -> v = 0; goto taking     /* not needed, but it must be stored */
        :: v != new && v != resend && v != again && v != takeover && !(st[x] == absent && usable) -> say()
        :: else                                  /* spent outside: told so, no 402 */
        fi;
        rest();
        goto begin
    }
verify:                                          /* one block of the chain; no objection goes on */
#ifdef FAULT_WORK_BEFORE_ACCEPT
    goto call;
#endif
    atomic {
        if
        :: refuse(); rest(); goto begin
        :: skip
        fi
    }
#ifdef FAULT_ACCEPT_WITHOUT_LOCK
    atomic { order_decide() }
#endif
taking:                                          /* accept; a label of that name would mean something to Spin */
    atomic {
        order_accept();
        if
        :: goto taking                           /* the reply was lost: asked again, with the same attempt */
        :: skip
        fi;
        attempt[cur] = (attempt[cur] == me + 1 -> 0 : attempt[cur]);
        if
        :: v == accepted -> rest(); goto call
        :: v == resent
        :: else -> say()
        fi;
        rest();
        goto begin
    }
call:                                            /* the upstream */
    atomic {
        assert(order && st[cur] != absent);                                /* I1 */
        assert(!(write && ran));                                           /* I11 */
        if
        :: end = done; ran = true
        :: end = failed                          /* never reached, refused; a read's 5xx */
        :: write -> end = lost; ran = true       /* it may have been done */
        :: ran = true; die(); goto begin
        :: die(); goto begin
        fi
    }
finish:
    atomic {
        if
        :: die()
        :: work != running || holder != me + 1   /* late: asks again what the order is */
        :: work == running && holder == me + 1 ->
            order_finish();
            if
            :: end == done || end == lost
#ifdef FAULT_NOT_CHARGED_BLINDLY
            :: end == failed -> not_charged()
#else
            :: end == failed && st[cur] == settled -> assert(debt[cur])
            :: end == failed && st[cur] != settled -> not_charged()
#endif
            fi
        fi;
        rest();
        goto begin
    }
}

/* ======== the settler: one round after the other ======== */

/* x is proven paid by its own Transfer. */
inline prove() {
    assert(used[x] == paid);                                               /* I3 */
    st[x] = settled;
    adopt();
    debt[x] = (debt[x] || (!SALE(x) && work != lost));
    books()
}

inline authorization_end(state) {
    assert(used[x] != paid);                                               /* I4 */
    assert((state == void -> used[x] == gone : final_time >= dead_after[x]));    /* I4 */
    st[x] = state;
    adopt();
    books()
}

/* What the oldest transaction has proven, in one commit with its end. */
inline proofs_record() {
    x = tx_of[0];
    if
    :: outcome[0] == carried && !OVER(st[x]) -> prove()
    :: outcome[0] == reverted && st[x] == sent -> st[x] = due
    :: else
    fi;
    tx[0] = tx[1]; tx_of[0] = tx_of[1]; outcome[0] = outcome[1]; pool[0] = pool[1];
    tx[1] = 0; tx_of[1] = 0; outcome[1] = 0; pool[1] = 0; x = A
}

/* Claimed with time left, and the node's estimate does not object. */
#define can_submit(y) (st[y] == due && head_time < valid_before[y] && used[y] == unused)
#define NEXT (tx[0] == 0 -> 0 : 1)

/* What the resolver's look at one nonce proves. */
#define proven_paid(y) (used[y] == paid)
#define proven_void(y) (used[y] == gone && final_use[y])
#define proven_expired(y) (used[y] == unused && final_time >= dead_after[y])
#define can_resolve(y) (WATCHED(st[y]) && (proven_paid(y) || proven_void(y) || proven_expired(y) || planted(y)))
#if defined(FAULT_PAID_BY_FLAG)
#define planted(y) (used[y] == gone)
#elif defined(FAULT_FAILED_ON_TIMEOUT)
#define planted(y) (st[y] == sent && used[y] == unused && head_time + 1 >= dead_after[y])
#elif defined(FAULT_END_BY_OLD_DEADLINE)
#define planted(y) (used[y] == unused && final_time >= valid_before[y])
#else
#define planted(y) false
#endif

inline resolve() {
    if
    :: proven_paid(x) -> prove()
    :: proven_void(x) -> authorization_end(void)
    :: proven_expired(x) -> authorization_end(expired)
#if defined(FAULT_PAID_BY_FLAG)
    :: planted(x) -> prove()
#else
    :: planted(x) -> authorization_end(expired)
#endif
    fi
}

inline relay_store() {
    assert(tx[1] == 0);
    k = NEXT; tx[k] = signed; tx_of[k] = x; st[x] = sent;
    x = A
}

inline send(k, bytes) {
    assert(tx[k] != 0);                                                    /* I1 */
    pool[k] = (outcome[k] == 0 -> bytes : 0)
}

#ifdef FAULT_RECOVERY_SIGNS_ANEW
#define RECOVERED OTHERS
#else
#define RECOVERED STORED
#endif
#ifdef FAULT_FORGET_RELEASED
#define WATCHED(s) (!OVER(s) && (s) != released)
#else
#define WATCHED(s) (!OVER(s))
#endif

/* Its steps keep nothing in memory but what stands between commit and broadcast, so that is where its death can matter; and any
 * order of the steps may happen, since each may be cut short. */
proctype settler() {
    byte x, k;
round:
end_idle:
    if
    /* prove: receipts; where nothing is seen, the very same bytes again */
    :: atomic { tx[0] != 0 && outcome[0] != 0 -> proofs_record(); goto round }
    :: atomic { tx[0] != 0 && outcome[0] == 0 && pool[0] == 0 -> send(0, RECOVERED); tx[0] = broadcast; goto round }
    :: atomic { tx[1] != 0 && outcome[1] == 0 && pool[1] == 0 -> send(1, RECOVERED); tx[1] = broadcast; goto round }
    /* resolve: the flag, the time and the log, from one block */
    :: atomic { can_resolve(A) -> x = A; resolve(); goto round }
    :: atomic { can_resolve(B) -> x = B; resolve(); x = A; goto round }
    /* sweep: a lease whose process died, or seems to have */
    :: atomic { order && work == running ->
        if :: write -> order_work_end(lost) :: else -> order_work_end(failed) fi;
        goto round
    }
    /* submit: sign, COMMIT */
#ifdef FAULT_SETTLE_BEFORE_COMMIT
    :: atomic { can_submit(A) || can_submit(B) -> k = NEXT; send(k, STORED); k = 0; goto round }
#endif
    :: atomic { can_submit(A) -> x = A; relay_store() }
    :: atomic { can_submit(B) -> x = B; relay_store() }
    fi;
    atomic {                                     /* then broadcast, and note that */
        if
        :: send(k, STORED); tx[k] = broadcast
        :: send(k, STORED)                       /* dies before the note */
        :: skip                                  /* dies before the broadcast */
        fi;
        k = 0;
        goto round
    }
}

/* ======== the chain, third parties, the payer, and time ======== */

inline land(y) { assert(!DEAD(st[y])); used[y] = paid }                    /* I4: never on what we called dead */

inline include(k) {
    assert(tx[k] != 0 && pool[k] == STORED);                               /* I1: no hash is ever lost */
    pool[k] = 0;
    if
    :: used[tx_of[k]] == unused && head_time < valid_before[tx_of[k]] ->
        if
        :: land(tx_of[k]); outcome[k] = carried
        :: outcome[k] = reverted                 /* for a passing reason: gas, a pause, a balance */
        fi
    :: else -> outcome[k] = reverted
    fi
}

proctype chain() {
end_chain:
    do
    :: atomic { pool[0] != 0 && outcome[0] == 0 -> include(0) }
    :: atomic { pool[1] != 0 && outcome[0] != 0 && outcome[1] == 0 -> include(1) }
    :: d_step { pool[0] != 0 && head_time < END -> pool[0] = 0 }                 /* forgotten by the nodes; not for ever */
    :: d_step { used[A] == unused && head_time < shown[A] -> land(A) }           /* a third party submits what it saw */
    :: d_step { used[B] == unused && head_time < shown[B] -> land(B) }
    :: d_step { used[A] == unused && head_time < END && shown[A] != 0 -> used[A] = gone }   /* the payer cancels */
    od
}

proctype clock() {
end_clock:
    do
    :: d_step { final_time == head_time && head_time < END -> head_time++ }
    :: d_step { final_time < head_time -> final_time++; final_use[A] = (used[A] == gone) }
    :: final_time == END -> break
    od
}

init {
    atomic {
        if :: write = true :: write = false fi;
        run presenter(0); run presenter(1); run settler(); run chain(); run clock()
    }
}

#ifdef LIVE
/* In the end nothing runs and every authorization has its end, whoever dies and whatever the chain drops. */
ltl ends { <>[] quiet }
#endif
