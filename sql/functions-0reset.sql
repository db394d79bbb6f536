-- Functions, views and row types are made anew by every migration: dropping first lets their result types change. They are listed
-- before the first is dropped: one that has gone with another has no name any more.
DO $$
DECLARE
    x text;
    all_of_them text[] := ARRAY(
        SELECT format('DROP FUNCTION IF EXISTS %s CASCADE', oid::regprocedure) FROM pg_proc
         WHERE pronamespace = 'payonce'::regnamespace
        UNION ALL
        SELECT format('DROP VIEW IF EXISTS payonce.%I CASCADE', relname) FROM pg_class
         WHERE relnamespace = 'payonce'::regnamespace AND relkind = 'v'
        UNION ALL
        SELECT format('DROP TYPE IF EXISTS payonce.%I CASCADE', relname) FROM pg_class
         WHERE relnamespace = 'payonce'::regnamespace AND relkind = 'c');
BEGIN
    FOREACH x IN ARRAY all_of_them LOOP
        EXECUTE x;
    END LOOP;
END $$;
