/* config.schema.json and the parser say the same: key by key, and on files made from the schema. */
#include "tests/unit/test.h"

#include "tests/config/good.h"

static json_t *load_schema(void)
{
    json_t *j = json_load_file(SCHEMA, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    return j;
}

/* ---- key by key ---- */

static const char *type_of(enum conf_kind k)
{
    switch (k) {
    case CONF_TEXT:
    case CONF_CHOICE:
    case CONF_AMOUNT:
    case CONF_ADDRESS:
        return "string";
    case CONF_INT:
        return "integer";
    case CONF_BOOL:
        return "boolean";
    case CONF_TEXTS:
    case CONF_OBJECTS:
        return "array";
    }
    abort();
}

static void expect_int(const json_t *schema, const char *keyword, int64_t value, const char *key)
{
    const json_t *j = json_object_get(schema, keyword);
    if (!json_is_integer(j) || json_integer_value(j) != value)
        fail_msg("%s: %s is not %lld", key, keyword, (long long)value);
}

static void compare_choices(const struct conf_key *k, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "enum");
    size_t n = 0;
    for (; k->choices[n]; n++)
        assert_string_equal(json_string_value(json_array_get(list, n)), k->choices[n]);
    assert_int_equal(json_array_size(list), n);
}

static json_t *default_of(const struct conf_key *k, const char *object)
{
    const char *at = object + k->at;
    const char *text;
    int64_t wide;
    uint32_t narrow;
    struct amount amount;
    switch (k->kind) {
    case CONF_TEXT:
        memcpy(&text, at, sizeof text);
        return text ? json_string(text) : NULL;
    case CONF_AMOUNT:
        memcpy(&amount, at, sizeof amount);
        return k->required ? NULL : json_string(amount_text(amount).s);
    case CONF_INT:
        memcpy(&wide, at, k->size == sizeof wide ? sizeof wide : 0);
        memcpy(&narrow, at, sizeof narrow);
        return k->required ? NULL : json_integer(k->size == sizeof wide ? wide : narrow);
    case CONF_BOOL:
        return json_false();
    case CONF_CHOICE:
    case CONF_ADDRESS:
    case CONF_TEXTS:
    case CONF_OBJECTS:
        return NULL;
    }
    abort();
}

static void compare_object(const struct conf_object *o, const json_t *schema);

static void compare_key(const struct conf_object *o, const struct conf_key *k, const json_t *schema)
{
    assert_non_null(json_str(schema, "description"));
    assert_string_equal(json_str(schema, "type"), type_of(k->kind));
    if (k->choices)
        compare_choices(k, schema);
    if (k->kind == CONF_INT) {
        expect_int(schema, "minimum", k->min, k->name);
        expect_int(schema, "maximum", k->max, k->name);
    } else if (k->kind == CONF_TEXT) {
        expect_int(schema, "minLength", k->min, k->name);
        expect_int(schema, "maxLength", k->max, k->name);
    } else if (k->kind == CONF_TEXTS || k->kind == CONF_OBJECTS) {
        expect_int(schema, "minItems", k->min, k->name);
        expect_int(schema, "maxItems", k->max, k->name);
    }
    OWNED char *object = mem_new(o->size);
    o->defaults(object);
    JSON *expected = default_of(k, object);
    const json_t *given = json_object_get(schema, "default");
    if (expected ? !json_equal(expected, given) : given != NULL)
        fail_msg("%s: the default differs", k->name);
    if (k->of)
        compare_object(k->of, json_object_get(schema, "items"));
}

static bool listed(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
            return true;
    }
    return false;
}

static void compare_object(const struct conf_object *o, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
    assert_string_equal(json_str(schema, "type"), "object");
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    assert_int_equal(json_object_size(properties), o->key_count);
    size_t required_count = 0;
    for (size_t i = 0; i < o->key_count; i++) {
        const struct conf_key *k = &o->keys[i];
        const json_t *property = json_object_get(properties, k->name);
        if (!property)
            fail_msg("%s: the parser knows it, the schema does not", k->name);
        compare_key(o, k, property);
        assert_int_equal(listed(required, k->name), k->required);
        required_count += k->required;
    }
    assert_int_equal(json_array_size(required), required_count);
}

static void test_key_by_key(void **state)
{
    (void)state;
    JSON *schema = load_schema();
    compare_object(&conf_file, schema);
}

/* ---- files made from the schema ---- */

/* Two values of which one has the wrong type, whatever the right one is. */
static json_t *mistyped(const json_t *schema)
{
    const char *type = json_str(schema, "type");
    return strcmp(type, "string") == 0 ? json_integer(7) : json_string("wrong");
}

static void expect(const json_t *file, bool good_one, const char *what, const char *key)
{
    struct config_why why = { "" };
    struct config *c = load_json(file, &why);
    if ((c != NULL) != good_one)
        fail_msg("%s %s: the parser says '%s'", key, what, c ? "fine" : why.text);
    if (!good_one && !strstr(why.text, key))
        fail_msg("%s %s: '%s' does not name it", key, what, why.text);
    config_free(c);
}

static void vary_number(json_t *file, json_t *object, const char *key, const json_t *schema)
{
    json_object_set_new(object, key, json_integer(json_integer_value(json_object_get(schema, "maximum")) + 1));
    expect(file, false, "above its maximum", key);
    json_object_set_new(object, key, json_integer(json_integer_value(json_object_get(schema, "minimum")) - 1));
    expect(file, false, "below its minimum", key);
}

/* Each property of `object`, a part of `file`, as the schema has it. */
static void vary(json_t *file, json_t *object, const json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties");
    for (void *i = json_object_iter(properties); i; i = json_object_iter_next(properties, i)) {
        const char *key = json_object_iter_key(i);
        const json_t *property = json_object_iter_value(i);
        JSON *kept = json_incref(json_object_get(object, key));
        assert_non_null(kept);
        json_object_del(object, key);
        expect(file, !listed(json_object_get(schema, "required"), key), "removed", key);
        json_object_set_new(object, key, mistyped(property));
        expect(file, false, "of another type", key);
        json_object_set_new(object, key, json_null());
        expect(file, false, "null", key);
        if (json_object_get(property, "maximum"))
            vary_number(file, object, key, property);
        json_object_set(object, key, kept);
        if (json_is_object(json_array_get(kept, 0)))
            vary(file, json_array_get(kept, 0), json_object_get(property, "items"));
    }
    json_object_set_new(object, "surplus", json_true());
    expect(file, false, "added", "surplus");
    json_object_del(object, "surplus");
}

static void test_files_from_the_schema(void **state)
{
    (void)state;
    JSON *schema = load_schema(), *file = good_json();
    expect(file, true, "as it is", "");
    vary(file, file, schema);
    expect(file, true, "as it was", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_by_key),
        cmocka_unit_test(test_files_from_the_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
