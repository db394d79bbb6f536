/* One order: two presenters, gateways and a settler that may die between any two steps, a chain that may include, drop or
 * delay, and a third party that submits whatever it has seen. Work and money are two axes, with the code's own names.
 *
 *   order_decide, order_accept, order_finish, orders_sweep   sql/functions-orders.sql
 *   relay_store, proofs_record, authorization_end            sql/functions-relay.sql
 *   authorization_landed, order_paid_by                      sql/functions-money.sql, functions-orders.sql
 *   presenter: find, verify, accept, call, finish, wait      api/gate.c, gate_verify.c, gate_work.c, gate_reply.c
 *   settler: prove, submit, resolve, sweep                   settle/prove.c, relay.c, resolve.c, settler.c
 *
 * A SQL function is one atomic step: it decides and writes under lock in one commit. Between two of them anything may happen,
 * the death of the process too. "I4" marks an assertion of the design's invariant 4. FAULT_* plants a fault (run.test.mjs).
 * SIGNATURE: the second presenter has a second signature over the first one's nonce, with a later deadline, instead of a fresh
 * authorization. LIVE: the claim at the end, instead of the assertions alone.
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
/* The observer's, for the assertions alone: */
bool ran;                            /*   the upstream was reached, and may have done it */
bool called_off[2];                  /*   while it stood released, somebody was told to pay anew, or that nothing is charged */
#ifndef OBSERVED
#define OBSERVED true
#endif

#define DEAD(s) ((s) == expired || (s) == void)
#define OVER(s) ((s) == absent || (s) == settled || DEAD(s))
#define MOVING(s) ((s) == held || (s) == due || (s) == sent || (s) == settled)
#define quiet (!order || (work != running && OVER(st[A]) && OVER(st[B])))
#define SALE(y) ((y) == cur && (work == done || work == running))

/* ======== the order's SQL. x, before: the authorization presented, its validBefore; me: by whom; v: the verdict ======== */
/* What has landed is a sale or a debt, never both, never neither; of a lost order a person has it. WITNESS: something that
 * must be possible, lest the rest is true of nothing. */
#define BOOKED(y) (st[y] != settled || work == lost || SALE(y) != debt[y])
#ifndef WITNESS
#define WITNESS false
#endif
inline books() { assert(BOOKED(A) && BOOKED(B)); assert(!(WITNESS)) }      /* I12 */

/* y is to pay the order, or did. One that was to, and was not sent, is released. */
inline order_paid_by(y) {
    st[cur] = (y != cur && (st[cur] == held || st[cur] == due) -> released : st[cur]);
    cur = y
}

/* Whichever lands first pays its order, a released one too; a second one, and one for work that failed, is owed back. */
inline authorization_landed(before_it) {
    if
#ifndef FAULT_IGNORE_LANDED
    :: x != cur && st[cur] != settled -> order_paid_by(x)
#endif
    :: else
    fi;
    debt[x] = (x != cur || work == failed || (work == lost && before_it == released));
    books()
}

/* A further signature over a known nonce: the nonce dies with the latest deadline, and lives again if it seemed dead. */
inline signature_keep() {
    if
    :: st[x] != absent && st[x] != settled && st[x] != void && before > dead_after[x] ->
        shown[x] = before;
#ifndef FAULT_FORGET_OTHER_SIGNATURE
        dead_after[x] = before;
#ifndef FAULT_EXPIRED_FOR_GOOD
        st[x] = (st[x] == expired -> released : st[x])
#endif
#endif
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
    work = how;
    st[cur] = (st[cur] == held -> released : st[cur]);
#ifndef FAULT_LANDED_THEN_FAILED
    debt[cur] = (debt[cur] || (how == failed && st[cur] == settled));
#endif
    books()
}
#define usable (head_time + 2 <= before)
#define takeable (usable && (st[x] == absent || st[x] == released || st[x] == held))
#define landed (st[cur] == settled || st[x] == settled)
inline order_decide() {
    if
    :: !order -> v = new
    :: order && work == lost -> v = in_review
#ifdef FAULT_RERUN_LOST_WRITE
    :: order && work == lost && takeable -> v = again
#endif
    :: order && work == done && st[cur] == settled -> v = replay
    :: order && work == done && st[cur] != settled && landed -> v = in_flight
    :: order && work == running && landed -> v = in_flight
    :: order && work == failed && landed -> v = work_failed_paid
    /* a living lease may seem dead: a heartbeat that came late */
    :: order && work == running && !landed -> v = (write -> in_review : (takeable -> takeover : in_flight))
    :: order && work == running && !landed && holder != 0 -> v = in_flight
    :: order && work == failed && !landed -> v = (takeable -> again : pay_again)
    :: order && work == done && !landed && DEAD(st[cur]) -> v = (takeable -> resend : pay_again)
    :: order && work == done && !landed && !DEAD(st[cur]) -> v = in_flight
#ifdef FAULT_CHALLENGE_WHILE_SENT
    :: order && work == done && st[cur] == sent && head_time >= valid_before[cur] -> v = pay_again
#endif
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
    :: order && attempt[cur] == me + 1 && work != running -> v = resent
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
            order_paid_by(x); attempt[x] = me + 1; called_off[x] = false;
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

/* Does it still count? A late answer does too, if the work is thought lost and nobody ran it again. */
#define in_time (holder == me + 1 && (work == running || (end == done && work == lost)))
/* done: the answer is kept and the authorization is due, in one commit. What was owed back for it is earned after all. */
inline order_finish() {
    if
    :: end == done ->
        work = done;
        assert(st[cur] != released || !called_off[cur]);                   /* I5 */
        st[cur] = (st[cur] == held || st[cur] == released -> due : st[cur]);
#ifndef FAULT_KEPT_AND_OWED
        debt[cur] = false;
#endif
        books()
    :: else -> order_work_end(end)
    fi;
    holder = 0
}

/* ======== what a presenter is told ======== */
#define MOVES (order && (MOVING(st[A]) || MOVING(st[B])))
inline call_off() {
    called_off[A] = (called_off[A] || (OBSERVED && st[A] == released));
    called_off[B] = (called_off[B] || (OBSERVED && st[B] == released))
}
inline challenge() { assert(!MOVES); call_off() }                          /* I5: the one place that a 402 leaves from */
inline not_charged() { assert(!MOVES); call_off() }                        /* nothing unknown is called failed */
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
#define WANTED(w) ((w) == new || (w) == resend || (w) == again || (w) == takeover)
/* Our terms or the chain object: a balance, a pause, a clock, a cancelled nonce. Is a 402 right, then? Asked anew. */
inline refuse() {
    order_decide();
    if
#ifdef FAULT_CHALLENGE_WITHOUT_ASKING_AGAIN
    :: challenge()
#endif
    :: v == new || v == again || v == resend -> challenge()
    :: v == takeover -> undecided()
    :: !WANTED(v) -> say()
    fi
}
/* What the request is told that waited for its own order, or for the copy that was there first. */
inline look() {
    if
    :: order && work == done && st[cur] == settled -> answer()
    :: order && work == done && DEAD(st[cur]) -> challenge()               /* "unpaid" */
    :: order && work == done && !OVER(st[cur]) -> undecided()
    :: order && work == failed && st[cur] != settled -> not_charged()
#ifdef FAULT_FAILED_WHILE_RUNNING
    :: order && work == running -> not_charged()
#endif
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
        :: me == 0 -> x = A; before = FIRST_DEADLINE
#ifndef LIVE                                     /* which would take too long */
        :: me == 1 -> x = A; before = FIRST_DEADLINE
#endif
        :: me == 1 -> before = END;
#ifndef SIGNATURE
            x = B
#endif
        :: look(); goto begin
        fi;
        signature_keep();
        order_decide();
        if
        :: v == new -> challenge()               /* its quote expired */
        :: WANTED(v) && used[x] == unused && usable ->
            if                                   /* the node's operator sees it; a second signature: once it is kept */
            :: st[x] == absent && shown[x] == 0 -> shown[x] = (x == A -> FIRST_DEADLINE : before)
            :: else
            fi;
            v = 0;
            goto verify
        :: WANTED(v) && used[x] != paid -> refuse()
        :: WANTED(v) && used[x] == paid          /* spent outside: told so, no 402 */
        :: !WANTED(v) && st[x] == absent && usable -> v = 0; goto taking   /* not needed, but it must be stored */
        :: !WANTED(v) && !(st[x] == absent && usable) -> say()
        fi;
        rest(); goto begin
    }
verify:                                          /* one block of the chain */
#ifdef FAULT_WORK_BEFORE_ACCEPT
    goto call;
#endif
    if
    :: atomic { refuse(); rest(); goto begin }
    :: skip
    fi;
#ifdef FAULT_ACCEPT_WITHOUT_LOCK
    atomic { order_decide() }
#endif
taking:                                          /* accept: a label of that name means something else to Spin */
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
        rest(); goto begin
    }
call:                                            /* the upstream */
    atomic {
        assert(order && st[cur] != absent);                                /* I1 */
        assert(!(write && ran));                                           /* I11 */
        if
        :: end = done; ran = OBSERVED
        :: end = failed                          /* never reached, refused; a read's 5xx */
        :: write -> end = lost; ran = OBSERVED       /* it may have been done */
        :: ran = OBSERVED; die(); goto begin
        :: die(); goto begin
        fi
    }
finish:
    atomic {
        if
        :: die()
#ifdef FAULT_FAILED_TURNS_DONE
        :: holder == me + 1 && end == done && work == failed -> order_finish()
#endif
        :: !in_time                              /* late: asks again what the order is */
        :: in_time ->
            order_finish();
            if
            :: end == done || end == lost        /* waits for the proof; in review */
            :: end == failed && st[cur] != settled -> not_charged()
            :: end == failed && st[cur] == settled -> assert(debt[cur]);   /* work_failed_paid */
#ifdef FAULT_NOT_CHARGED_BLINDLY
                not_charged()
#endif
            fi
        fi;
        rest(); goto begin
    }
}

/* ======== the settler: one round after the other ======== */
/* x is proven paid by its own Transfer. */
inline prove() {
    assert(used[x] == paid);                                               /* I3 */
    if                                           /* what it was, proofs.before, decides */
    :: st[x] == released -> st[x] = settled; authorization_landed(released)
    :: else -> st[x] = settled; authorization_landed(sent)
    fi
}
inline authorization_end(state) {
    assert(used[x] != paid);                                               /* I4 */
    assert((state == void -> used[x] == gone : final_time >= dead_after[x]));    /* I4 */
    st[x] = state
}
/* What the oldest transaction has proven, in one commit with its end. */
inline proofs_record() {
    x = tx_of[0];
    if
    :: outcome[0] == carried && !OVER(st[x]) -> prove()
    :: outcome[0] == reverted && st[x] == sent -> st[x] = (x == cur -> due : released)
#ifdef FAULT_SENT_FOR_A_PAID_ORDER
    :: outcome[0] == reverted && st[x] == sent -> st[x] = due
#endif
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
#define can_resolve(y) (WATCHED(st[y]) && (proven_paid(y) || proven_void(y) || proven_expired(y)))
inline resolve() {
    if
    :: proven_paid(x) -> prove()
    :: proven_void(x) -> authorization_end(void)
    :: proven_expired(x) -> authorization_end(expired)
    fi
}
inline relay_store() {
    assert(tx[1] == 0 && st[cur] != settled);    /* two open ones are the most; never for an order that is paid */
    k = NEXT; tx[k] = signed; tx_of[k] = x; st[x] = sent;
    x = A
}
inline send(k, bytes) {
    assert(tx[k] != 0);                                                    /* I1 */
    pool[k] = (outcome[k] == 0 -> bytes : 0)
}

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
    :: atomic { tx[0] != 0 && outcome[0] == 0 && pool[0] == 0 -> send(0, STORED); tx[0] = broadcast; goto round }
    :: atomic { tx[1] != 0 && outcome[1] == 0 && pool[1] == 0 -> send(1, STORED); tx[1] = broadcast; goto round }
#ifdef FAULT_RECOVERY_SIGNS_ANEW
    :: atomic { tx[0] != 0 && outcome[0] == 0 && pool[0] == 0 -> send(0, OTHERS); goto round }
#endif
    /* resolve: the flag, the time and the log, from one block */
    :: atomic { can_resolve(A) -> x = A; resolve(); goto round }
    :: atomic { can_resolve(B) -> x = B; resolve(); x = A; goto round }
#ifdef FAULT_PAID_BY_FLAG
    :: atomic { !OVER(st[A]) && used[A] == gone -> prove(); goto round }
#endif
#ifdef FAULT_FAILED_ON_TIMEOUT
    :: atomic { st[A] == sent && used[A] == unused && head_time + 1 >= dead_after[A] -> authorization_end(expired); goto round }
#endif
#ifdef FAULT_END_BY_OLD_DEADLINE
    :: atomic { !OVER(st[A]) && used[A] == unused && final_time >= valid_before[A] -> authorization_end(expired); goto round }
#endif
    /* sweep: a lease whose process died, or seems to have */
    :: atomic { order && work == running && write -> order_work_end(lost); goto round }
    :: atomic { order && work == running && !write -> order_work_end(failed); goto round }
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

init { atomic {
    if :: write = true :: write = false fi;
    run presenter(0); run presenter(1); run settler(); run chain(); run clock()
} }
#ifdef LIVE
/* In the end nothing runs and every authorization has its end, whoever dies and whatever the chain drops. */
ltl ends { <>[] quiet }
#endif
