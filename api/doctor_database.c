#include "api/doctor.h"
#include "base/clock.h"
#include "sql/sql.h"

enum { DATABASE_MS = 8000 };

static void check_version(struct doctor *d, const struct db_rows *r)
{
    const int there = (int)row_int(r, 0, "schema_version"), ours = db_schema_version();
    if (there == ours)
        doctor_say(d, FINDING_OK, "schema", "version %d", ours);
    else if (there < ours)
        doctor_say(d, FINDING_FAIL, "schema", "version %d, this program needs %d: run `payonce migrate`", there, ours);
    else
        doctor_say(d, FINDING_FAIL, "schema", "version %d is newer than this program's %d: install the newer Payonce",
                   there, ours);
}

static void check_durability(struct doctor *d, const struct db_rows *r)
{
    const bool fsync_on = row_bool(r, 0, "fsync"), pages = row_bool(r, 0, "full_page_writes");
    const bool commits = !row_is(r, 0, "synchronous_commit", "off");
    if (fsync_on && pages && commits)
        doctor_say(d, FINDING_OK, "durability", "fsync, full_page_writes and synchronous_commit are on");
    else
        doctor_say(d, FINDING_FAIL, "durability",
                   "fsync=%s full_page_writes=%s synchronous_commit=%s: all must be on, or a "
                   "power cut loses payments",
                   fsync_on ? "on" : "off", pages ? "on" : "off", row_text(r, 0, "synchronous_commit").p);
}

void doctor_database(struct doctor *d)
{
    struct config_why why;
    OWNED char *conninfo = config_conninfo(d->c, &why);
    if (!conninfo) {
        doctor_say(d, FINDING_FAIL, "database", "%s", why.text);
        return;
    }
    DB_ARGS none = { 0 };
    DB_ROWS *rows = NULL;
    struct db *db = db_open(d->loop, conninfo, "payonce_operator", 1);
    const enum db_rc rc = db_wait(db, "server_facts", &none, clock_mono_ms() + DATABASE_MS, &rows);
    if (rc == DB_UNAVAILABLE)
        doctor_say(d, FINDING_FAIL, "database",
                   "cannot be reached as payonce_operator: is it running, was it migrated, may "
                   "this user be that role?");
    else if (rc == DB_REFUSED)
        doctor_say(d, FINDING_FAIL, "database", "is reached, but holds no schema of Payonce: run `payonce migrate`");
    if (rc == DB_OK) {
        doctor_say(d, FINDING_OK, "database", "PostgreSQL %s", row_text(rows, 0, "server_version").p);
        check_version(d, rows);
        check_durability(d, rows);
        if (row_bool(rows, 0, "in_recovery"))
            doctor_say(d, FINDING_FAIL, "database", "is in recovery (a standby): name the primary");
    }
    db_free(db);
}
