-- Functions, views and row types are made anew by every migration: dropping first lets their result types change.
DO $$
DECLARE x text;
BEGIN
    FOR x IN SELECT format('DROP FUNCTION IF EXISTS %s CASCADE', oid::regprocedure) FROM pg_proc
              WHERE pronamespace = 'payonce'::regnamespace
             UNION ALL
             SELECT format('DROP VIEW IF EXISTS payonce.%I CASCADE', relname) FROM pg_class
              WHERE relnamespace = 'payonce'::regnamespace AND relkind = 'v'
             UNION ALL
             SELECT format('DROP TYPE IF EXISTS payonce.%I CASCADE', relname) FROM pg_class
              WHERE relnamespace = 'payonce'::regnamespace AND relkind = 'c'
    LOOP
        EXECUTE x;
    END LOOP;
END $$;
