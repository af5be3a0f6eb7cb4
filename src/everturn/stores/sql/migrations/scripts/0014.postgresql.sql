-- Running upgrade 0013 -> 0014

CREATE INDEX gates_expiring ON gates (session) WHERE is_open AND resolution IS NULL AND expires > 0;

CREATE FUNCTION everturn_newest(asked text, newest bigint, most bigint)
RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT l.n, l.session, f.body
    FROM (SELECT r.n, r.session, r.message, r.words, r.tenant FROM lookup r
        WHERE r.tenant >= current_setting('everturn.tenant', true) AND r.tenant <= current_setting('everturn.tenant', true) ORDER BY r.tenant DESC, r.n DESC LIMIT newest) l
    CROSS JOIN LATERAL (
        SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session
        WHERE m.session = l.session AND m.id = l.message AND NOT m.is_deleted AND NOT s.erased AND s.tenant = current_setting('everturn.tenant', true)
        AND (coalesce(current_setting('everturn.viewer', true), '') = '' OR (everturn_is_readable(s.id)
            AND NOT EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session IN (s.id, split_part(s.id, '-', 1)))))
        OFFSET 0) f
    WHERE l.words @@ (SELECT asked::tsquery)
    ORDER BY l.tenant DESC, l.n DESC LIMIT most
$$;

DO $$ BEGIN EXECUTE 'ALTER FUNCTION everturn_newest(text, bigint, bigint) SET search_path = ' || quote_ident(current_schema()) || ', pg_temp'; END $$;

REVOKE ALL ON FUNCTION everturn_newest(text, bigint, bigint) FROM PUBLIC;

UPDATE everturn_schema SET version_num='0014' WHERE everturn_schema.version_num = '0013';

UPDATE everturn_schema SET compatible_since='0013';
