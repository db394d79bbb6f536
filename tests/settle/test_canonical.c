/* Which requests ask the same question. Vectors, then random requests against an oracle that knows what each pair means. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "settle/canonical.h"

static const struct address wallet = { { 1 } };

static bool key_of(const char *query, const char *type, const char *body, struct hash32 *ret)
{
    const struct question q = { .payer = &wallet, .tool = "countries", .method = "GET", .path = SLICE_INIT("/countries"),
                                .query = slice_of(query), .body = slice_of(body ? body : ""),
                                .content_type = type ? slice_of(type) : (struct slice){ NULL, 0 } };
    return question_key(&q, ret);
}

/* ---- vectors ---- */

struct vector { const char *a, *b; bool same; };

static void compare_queries(const struct vector *v)
{
    struct hash32 a, b;
    assert_true(key_of(v->a, NULL, NULL, &a) && key_of(v->b, NULL, NULL, &b));
    if (hash_eq(&a, &b) != v->same)
        fail_msg("%s and %s are %s", v->a, v->b, v->same ? "two questions" : "one");
}

static void test_queries(void **state)
{
    (void)state;
    static const struct vector vectors[] = {
        { "b=2&a=1", "a=1&b=2", true },
        { "a=%7e", "a=~", true },
        { "a=%2f", "a=%2F", true },
        { "%61=1", "a=1", true },
        { "a=%C3%A9", "a=%c3%a9", true },
        { "a=e%CC%81", "a=%C3%A9", false },       /* composed or not: two texts */
        { "a=1&a=2", "a=2&a=1", false },
        { "a=1&b=3&a=2", "b=3&a=1&a=2", true },
        { "a=1&a=1", "a=1", false },
        { "a", "a=", false },
        { "a=", "", false },
        { "a=1", "a=1.0", false },
        { "a=1", "a=01", false },
        { "a=1", "A=1", false },
        { "a=x+y", "a=x%20y", false },            /* a form's blank, but not every server's */
        { "a=x+y", "a=x%2By", false },
        { "a=1%262", "a=1&2", false },
        { "a=1%3D2", "a=1=2", false },            /* a reserved character and its encoding are not equivalent (RFC 3986 2.2) */
        { "a=1&b=2", "a=1&b=2&", false },
        { "a[]=1&a%5B%5D=2", "a%5B%5D=2&a[]=1", false }, /* one name to most servers, so the order counts */
        { "a.b=1&a_b=2", "a_b=2&a.b=1", false },
        { "a[x]=1&a[y]=2", "a[y]=2&a[x]=1", false },
        { "q=%00", "q=", false },
        { "ab=1&a=2", "a=2&ab=1", true },
    };
    struct hash32 key;
    for (size_t i = 0; i < COUNT(vectors); i++)
        compare_queries(&vectors[i]);
    static const char *const broken[] = { "a=%", "a=%4", "a=%zz", "%g0=1" };
    for (size_t i = 0; i < COUNT(broken); i++)
        assert_false(key_of(broken[i], NULL, NULL, &key));
}

static void test_bodies(void **state)
{
    (void)state;
    static const struct vector vectors[] = {
        { "{\"a\":1,\"b\":2}", "{ \"b\" : 2,\n\"a\" : 1 }", true },
        { "{\"a\":1}", "{\"a\":1.0}", false },
        { "{\"a\":1}", "{\"a\":1e0}", false },
        { "{\"a\":10}", "{\"a\":1e1}", false },
        { "{\"a\":-0}", "{\"a\":0}", false },
        { "{\"a\":12345678901234567890}", "{\"a\":12345678901234567891}", false },
        { "{\"a\":\"\\u00e9\"}", "{\"a\":\"\xc3\xa9\"}", true },
        { "{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}", true },
        { "{\"a\":\"\\/\"}", "{\"a\":\"/\"}", true },
        { "{\"\\u0061\":1}", "{\"a\":1}", true },
        { "{\"a\":\"1\"}", "{\"a\":1}", false },
        { "{\"a\":null}", "{}", false },
        { "{\"a\":\"\"}", "{\"a\":null}", false },
        { "{\"a\":[]}", "{\"a\":{}}", false },
        { "[1,2]", "[2,1]", false },
        { "[[1],[2]]", "[[1,2]]", false },
        { "{\"a\":{\"b\":1},\"c\":2}", "{\"a\":{\"b\":1,\"c\":2}}", false },
        { "{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"y\":2,\"x\":1}}", true },
        { "{\"a\":1,\"a\":2}", "{\"a\":2,\"a\":1}", false }, /* twice: its bytes count */
        { "{\"a\":1", "{\"a\":1 ", false },
        { "{\"a\":\"1:b\"}", "{\"a\":\"1\",\"b\":\"\"}", false },
        { "{\"a\":tru}", "{\"a\": tru}", false },
        { "{\"a\":\"\\ud800\"}", "{\"a\": \"\\ud800\"}", false },
        { "{\"a\":01}", "{ \"a\":01}", false },
    };
    for (size_t i = 0; i < COUNT(vectors); i++) {
        struct hash32 a, b;
        const struct vector *v = &vectors[i];
        assert_true(key_of("", "application/json", v->a, &a) && key_of("", "application/json; charset=utf-8", v->b, &b));
        if (hash_eq(&a, &b) != v->same)
            fail_msg("%s and %s are %s", v->a, v->b, v->same ? "two questions" : "one");
    }
    struct hash32 text, json;
    assert_true(key_of("", "text/plain", "{\"a\": 1}", &text) && key_of("", "application/json", "{\"a\": 1}", &json));
    assert_false(hash_eq(&text, &json));
    assert_true(key_of("", "text/plain", "{\"a\":1}", &json));
    assert_false(hash_eq(&text, &json));     /* no JSON to us: byte for byte */
}

/* Who reads the same text under another charset, or in another dialect, reads other arguments. */
static void test_media_types(void **state)
{
    (void)state;
    static const struct vector vectors[] = {
        { "application/json", "Application/JSON;charset=UTF-8", true },
        { "application/json", "application/json ; charset=\"utf-8\"", true },
        { "application/json", "application/json;", true },
        { "application/json", "application/json; charset=utf-7", false },
        { "application/json", "application/json;odata.metadata=full", false },
        { "application/json", "application/json;charset=utf-8;v=2", false },
        { "application/ld+json;profile=a", "application/ld+json;profile=b", false },
        { "application/ld+json", "application/json", false },
        { "application/json", "app", false },
    };
    for (size_t i = 0; i < COUNT(vectors); i++) {
        struct hash32 a, b;
        assert_true(key_of("", vectors[i].a, "{\"q\":\"+AOk-\"}", &a) && key_of("", vectors[i].b, "{ \"q\":\"+AOk-\"}", &b));
        if (hash_eq(&a, &b) != vectors[i].same)
            fail_msg("%s and %s are %s", vectors[i].a, vectors[i].b, vectors[i].same ? "two questions" : "one");
    }
}

/* Deep enough for any argument; what is deeper counts byte for byte, and costs no stack. */
static void test_depth(void **state)
{
    (void)state;
    BUF deep = { 0 }, ret = { 0 };
    for (int i = 0; i < 100000; i++)
        buf_puts(&deep, "[");
    assert_false(canonical_json((struct slice){ deep.p, deep.n }, NULL, 0, &ret));
    assert_true(canonical_json(SLICE("[[[[[[[[[[1]]]]]]]]]]"), NULL, 0, &ret));
}

static void test_volatile(void **state)
{
    (void)state;
    static const char *const fields[] = { "ts", "/ts", "/meta/a~1b", "/list/1" };
    struct hash32 a, b;
    struct question q = { .payer = &wallet, .tool = "t", .method = "POST", .path = SLICE_INIT("/t"), .query = SLICE_INIT("ts=1&x=1"),
                          .body = SLICE_INIT("{\"ts\":1,\"meta\":{\"a/b\":1,\"c\":1},\"list\":[1,2,3]}"),
                          .content_type = SLICE_INIT("application/json"), .volatiles = fields, .volatile_count = COUNT(fields) };
    assert_true(question_key(&q, &a));
    q.query = SLICE("x=1&%74s=2");
    q.body = SLICE("{\"meta\":{\"c\":1,\"a/b\":2},\"list\":[1,{},3]}");
    assert_true(question_key(&q, &b));
    assert_true(hash_eq(&a, &b));
    static const char *const others[] = { "{\"meta\":{\"c\":2},\"list\":[1,2,3]}", "{\"meta\":{\"c\":1},\"list\":[2,2,3]}",
                                          "{\"meta\":{\"c\":1,\"ts\":1},\"list\":[1,2,3]}", "{\"meta\":{\"c\":1},\"list\":[1,3]}" };
    for (size_t i = 0; i < COUNT(others); i++) {
        q.body = slice_of(others[i]);
        assert_true(question_key(&q, &b));
        assert_false(hash_eq(&a, &b));
    }
    assert_true(json_pointer_ok("/a~0b/0") && json_pointer_ok("/"));
    assert_false(json_pointer_ok("/a~2") || json_pointer_ok("a") || json_pointer_ok("/a~"));
}

/* Everything that is in the key, one at a time. */
static void test_each_part(void **state)
{
    (void)state;
    static const struct address other = { { 2 } };
    static const char *const vary[] = { "accept-language" };
    const struct slice de = SLICE("de"), fr = SLICE("fr"), none = { NULL, 0 }, empty = SLICE("");
    const struct question q = { .payer = &wallet, .tool = "t", .method = "GET", .path = SLICE_INIT("/t"), .query = SLICE_INIT("a=1"),
                                .vary = vary, .vary_values = &de, .vary_count = 1 };
    struct question others[10];
    struct hash32 first, key;
    for (size_t i = 0; i < COUNT(others); i++)
        others[i] = q;
    others[0].payer = &other;
    others[1].tool = "u";
    others[2].method = "HEAD";
    others[3].path = SLICE("/u");
    others[4].query = SLICE("a=2");
    others[5].body = SLICE("x");
    others[6].vary_values = &fr;
    others[7].vary_values = &none;
    others[8].vary_values = &empty;
    others[9].path = SLICE("/t1:q2"); /* no part runs into the next */
    assert_true(question_key(&q, &first));
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_true(question_key(&others[i], &key));
        if (hash_eq(&first, &key))
            fail_msg("part %zu is not in the key", i);
    }
}

/* ---- at random ---- */

enum { ROUNDS = 100000, PAIRS = 4 };

static uint64_t seed = 20261130;
static unsigned any(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* What is meant: names with values in their order. Two are the same question when each name has the same values in the same order. */
struct meaning { struct { unsigned name, value; } pair[PAIRS]; unsigned n; };

static const char *const names[] = { "a", "b", "\xc3\xa9", "zz" }, *const values[] = { "", "1", "1.0", "x y", "\xc3\xbc", "&=" };

static struct meaning random_meaning(void)
{
    struct meaning m = { .n = any(PAIRS + 1) };
    for (unsigned i = 0; i < m.n; i++) {
        m.pair[i].name = any(COUNT(names));
        m.pair[i].value = any(COUNT(values));
    }
    return m;
}

static bool same(const struct meaning *a, const struct meaning *b)
{
    for (unsigned name = 0; name < COUNT(names); name++) {
        unsigned i = 0, k = 0;
        for (;; i++, k++) {
            while (i < a->n && a->pair[i].name != name)
                i++;
            while (k < b->n && b->pair[k].name != name)
                k++;
            if (i >= a->n || k >= b->n)
                break;
            if (a->pair[i].value != b->pair[k].value)
                return false;
        }
        if ((i < a->n) != (k < b->n))
            return false;
    }
    return true;
}

/* Swaps neighbours of different names: the meaning stays. */
static void shuffle(struct meaning *m)
{
    for (int turns = 0; turns < 6; turns++)
        for (unsigned i = 1; i < m->n; i++)
            if (m->pair[i].name != m->pair[i - 1].name && any(2)) {
                const struct meaning before = *m;
                m->pair[i] = before.pair[i - 1];
                m->pair[i - 1] = before.pair[i];
            }
}

static void spell_query(struct buf *b, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        const bool must = c >= 0x80 || c == ' ' || c == '&' || c == '=';
        if (must || any(4) == 0)
            buf_printf(b, any(2) ? "%%%02x" : "%%%02X", c);
        else
            buf_add(b, s, 1);
    }
}

static void write_query(const struct meaning *m, struct buf *b)
{
    buf_puts(b, "");
    for (unsigned i = 0; i < m->n; i++) {
        buf_puts(b, i ? "&" : "");
        spell_query(b, names[m->pair[i].name]);
        buf_puts(b, "=");
        spell_query(b, values[m->pair[i].value]);
    }
}

static void blanks(struct buf *b)
{
    for (unsigned i = any(3); i > 0; i--)
        buf_add(b, &" \t\n\r"[any(4)], 1);
}

static void spell_json(struct buf *b, const char *s)
{
    buf_puts(b, "\"");
    for (; *s; s++)
        if ((unsigned char)*s < 0x80 && any(4) == 0)
            buf_printf(b, "\\u%04x", (unsigned)*s);
        else
            buf_add(b, s, 1);
    buf_puts(b, "\"");
}

/* {"name": [values in their order], ...} */
static void write_json(const struct meaning *m, struct buf *b)
{
    bool told[COUNT(names)] = { false }, some = false;
    blanks(b);
    buf_puts(b, "{");
    for (unsigned i = 0; i < m->n; i++) {
        if (told[m->pair[i].name])
            continue;
        told[m->pair[i].name] = true;
        buf_puts(b, some ? "," : "");
        some = true;
        blanks(b);
        spell_json(b, names[m->pair[i].name]);
        blanks(b);
        buf_puts(b, ":[");
        bool first = true;
        for (unsigned k = i; k < m->n; k++)
            if (m->pair[k].name == m->pair[i].name) {
                buf_puts(b, first ? "" : ",");
                first = false;
                blanks(b);
                spell_json(b, values[m->pair[k].value]);
            }
        buf_puts(b, "]");
        blanks(b);
    }
    buf_puts(b, "}");
    blanks(b);
}

static void test_at_random(void **state)
{
    (void)state;
    unsigned equal = 0, wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const struct meaning a = random_meaning();
        struct meaning b = any(2) ? a : random_meaning();
        if (any(3) == 0 && b.n)
            b.pair[any(b.n)].value = any(COUNT(values));
        shuffle(&b);
        BUF qa = { 0 }, qb = { 0 }, ja = { 0 }, jb = { 0 };
        struct hash32 ka, kb, la, lb;
        write_query(&a, &qa);
        write_query(&b, &qb);
        write_json(&a, &ja);
        write_json(&b, &jb);
        assert_true(key_of(qa.p, NULL, NULL, &ka) && key_of(qb.p, NULL, NULL, &kb));
        assert_true(key_of("", "application/json", ja.p, &la) && key_of("", "application/json", jb.p, &lb));
        equal += same(&a, &b);
        if (hash_eq(&ka, &kb) != same(&a, &b) || hash_eq(&la, &lb) != same(&a, &b)) {
            print_error("%s | %s | %s | %s\n", qa.p, qb.p, ja.p, jb.p);
            wrong++;
        }
        assert_int_equal(wrong, 0);
    }
    assert_in_range(equal, ROUNDS / 10, ROUNDS * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queries),  cmocka_unit_test(test_bodies),    cmocka_unit_test(test_depth),    cmocka_unit_test(test_media_types),
        cmocka_unit_test(test_volatile), cmocka_unit_test(test_each_part), cmocka_unit_test(test_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
