#include "test.h"

#include "chain/chain.h"

/* Lengths around the block of 136 bytes; byte i is i * 7 % 251. */
static const struct {
    size_t n;
    const char *hash;
} rows[] = {
    { 0, "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470" },
    { 1, "bc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98a" },
    { 135, "f5ed0263f0ed1a3f52cb79daa259d3b0ab9a99f1d8dbb8dfc2d3de803adaed2b" },
    { 136, "5c29d38c7f9f5bf8949bd492a46f8037d13f9be55187ffd11a983bed8bb3bb41" },
    { 137, "2f2423bfb698878aa04a117a5e409445e9aeb9cae62036a4b26988eba929b612" },
    { 271, "a80951a17088f3b3eedc30a1904ad5ef940cc41d5ac21eb5ad39cd15ddb82e75" },
    { 272, "0d005baa9f987f2abfbbe1187c84647395a845ed3e0062a53b1dbd7245088df8" },
    { 273, "204d2526b7ece31b9a2374fc22d301d3d669a5074278a59b72b80530b463f22d" },
    { 10000, "514e2159c83dc715117ec62e479dab83b363ffd10469bf34b9ec018f4414d1fd" },
};

static void known_answers(void **state)
{
    (void)state;
    OWNED uint8_t *p = mem_new(10000);
    for (size_t i = 0; i < 10000; i++)
        p[i] = (uint8_t)(i * 7 % 251);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[65];
        hex_write_bare(text, keccak256(p, rows[i].n).b, 32);
        assert_string_equal(text, rows[i].hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(known_answers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
