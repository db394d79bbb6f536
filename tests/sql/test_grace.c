/* While the database was down nobody could show signs of life: after its restart nobody is dead yet, for a while. */
#include "money.h"

static void restart(void)
{
    char why[300];
    assert_true(embedded_stop(scratch.dir, why, sizeof why));
    scratch_restart();
    PQfinish(pg);
    pg = sql_open(scratch.server.conninfo);
    sql_run(pg, "SET search_path = payonce, t");
}

static void test_grace(void **state)
{
    (void)state;
    struct ask read = with_id(), write = with_id(), b = again(3), c = again(4);
    write.attempt = write.nonce = write.request = c.nonce = c.request = 2;
    write.side_effect = "write";
    write.payment_id = "another-payment-id";
    write.quote = 0;
    accept_is(&read, "accepted", 1, 1);
    accept_is(&write, "accepted", 2, 1);
    sql_run(pg, "UPDATE instances SET until = now() - interval '60 s'");
    restart();
    find_is(&b, "in_flight", 1, false);
    find_is(&c, "in_flight", 2, false);
    accept_is(&b, "in_flight", 1, 1);
    accept_is(&c, "in_flight", 2, 1);
    sql_is(pg, "SELECT orders_sweep(10)", "0");
    work_is(1, "running");
    work_is(2, "running");

    /* a lease that ran out by itself did so, whoever lives */
    sql_run(pg, "UPDATE orders SET work_until = now() - interval '1 s' WHERE id = b(1, 16)");
    find_is(&b, "takeover", 1, false);

    instance_dies(1); /* and now there was time to show life */
    find_is(&c, "in_review", 2, false);
    sql_is(pg, "SELECT orders_sweep(10)", "2");
    work_is(1, "failed");
    work_is(2, "lost");
}

#define TEST(f) cmocka_unit_test_setup(f, money_clear)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_grace),
    };
    return cmocka_run_group_tests(tests, money_start, money_stop);
}
