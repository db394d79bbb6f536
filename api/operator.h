/* What the operator's commands that read the database share: one question, asked as payonce_operator, and a story told
 * as text. */
#ifndef API_OPERATOR_H
#define API_OPERATOR_H

#include "api/config.h"
#include "base/json.h"
#include "sql/sql.h"

/* Calls the function and gives its one row; NULL: why is said on standard error, with the command's name before it. */
struct db_rows *operator_ask(const struct config *c, const char *command, const char *function,
                             struct db_args *args) MUST_CHECK;
/* The same for functions that answer with JSON in the column named. Owned. */
json_t *operator_json(const struct config *c, const char *command, const char *function, const char *column,
                      struct db_args *args) MUST_CHECK;

/* Text from outside never steers a terminal: what is not printable ASCII is printed as ?. */
void say(const char *fmt, ...) PRINTF(1, 2);
void print_json(const json_t *j);
const char *member(const json_t *o, const char *key); /* a string; "-" where there is none */

/* Who asks, as the system knows them: decisions name their author. */
const char *operator_name(void) MUST_CHECK;

/* The parts of a story as the database's order_story has it (story.c). */
void story_head(const json_t *story);
void story_events(const json_t *story);
void story_money(const json_t *story); /* authorizations, their transactions and proofs; debts */
void story_told(const json_t *story);  /* how its seller's webhook took the news */
void story_review(const json_t *story);
void story_chain(const json_t *story); /* whether the events are all there, unchanged */

#endif
