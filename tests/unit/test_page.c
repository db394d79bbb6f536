/* The receipt's page: whatever stands in a receipt, none of it becomes markup. */
#include "tests/unit/test.h"

#include <string.h>

#include "base/json.h"
#include "receipts/receipts.h"

/* @ stands for what somebody would like to be markup. */
static const char every_text[] =
    "{'receipt_id':'@','order_id':'@','headline':'@','seller':'@','known_by':'@','issued_at':'@','payment_id':'@',"
    "'delivered_at':'@','display':{'symbol':'@','decimals':6,'explorer':'@'},'request':{'tool':'@','method':'@','digest':'@'},"
    "'answer':{'status':200,'size':1,'digest':'@'},'free_repeats':{'count':2},"
    "'payment':{'amount':'1','state':'@','block_time':'@','valid_before':'@','transaction':'@','payer':'@','payee':'@',"
    "'network':'@','asset':'@','nonce':'@','block':1,'depth':1,'log_index':0},"
    "'refunds':[{'amount':'1','state':'@','cause':'@','reason':'@','owed_since':'@','refunded_at':'@','transaction':'@',"
    "'to':'@','source_transaction':'@','debt':'@','block':2}],"
    "'timeline':[{'at':'@','event':'@','transaction':'@'}],'signature':{'signer':'@','value':'@'}}";

static json_t *receipt(const char *text)
{
    BUF b = { 0 };
    struct json_why why;
    for (const char *c = every_text; *c; c++)
        if (*c == '@')
            buf_puts(&b, text);
        else
            buf_printf(&b, "%c", *c == '\'' ? '"' : *c);
    return json_read(b.p, b.n, &why);
}

static size_t count(const char *page, const char *what)
{
    size_t n = 0;
    for (const char *at = strstr(page, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

static void nothing_becomes_markup(void **state)
{
    (void)state;
    JSON *r = receipt("2026-<x>\\\"'&-of many more letters");
    BUF page = { 0 };
    assert_non_null(r);
    receipt_page(&page, r);
    assert_int_equal(count(page.p, "<x>"), 0);
    assert_int_equal(count(page.p, "\"'"), 0);
    assert_int_equal(count(page.p, "'&-"), 0);
    /* headline twice, times twice each, and links once more */
    assert_true(count(page.p, "&lt;x&gt;") >= count(every_text, "@"));
}

/* One of many blocks and of one; two payments of one call. */
static void words(void **state)
{
    (void)state;
    JSON *r = receipt("settled");
    BUF page = { 0 };
    json_t *timeline = json_object_get(r, "timeline");
    json_array_append(timeline, json_array_get(timeline, 0));
    receipt_page(&page, r);
    assert_int_equal(count(page.p, "1 block deep"), 1);
    assert_int_equal(count(page.p, "The payment is on the chain"), 1);
    assert_int_equal(count(page.p, "Another payment for this call is on the chain"), 1);
    json_object_set_new(json_object_get(r, "payment"), "depth", json_integer(2));
    BUF deeper = { 0 };
    receipt_page(&deeper, r);
    assert_int_equal(count(deeper.p, "2 blocks deep"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_becomes_markup), cmocka_unit_test(words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
