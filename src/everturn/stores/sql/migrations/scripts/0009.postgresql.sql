-- Running upgrade 0008 -> 0009

ALTER TABLE sessions ADD COLUMN renamed BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE sessions ADD COLUMN pinned BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE sessions ADD COLUMN archived BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE sessions ADD COLUMN labels TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN organized DOUBLE PRECISION DEFAULT '0' NOT NULL;

CREATE INDEX sessions_pinned ON sessions (tenant, moved) WHERE pinned;

CREATE INDEX sessions_organized ON sessions (tenant, organized) WHERE organized > 0;

CREATE TABLE session_shares (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    hash TEXT NOT NULL,
    via TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    revoked DOUBLE PRECISION NOT NULL,
    seen DOUBLE PRECISION NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX session_shares_session ON session_shares (session);

CREATE INDEX session_shares_subject ON session_shares (tenant, subject);

CREATE INDEX session_shares_hash ON session_shares (tenant, hash) WHERE hash != '';

CREATE INDEX session_shares_notice ON session_shares (tenant) WHERE kind = 'admin' AND seen = 0;

CREATE TABLE temporary_sessions (
    session TEXT NOT NULL,
    tenant TEXT NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session)
);

CREATE INDEX temporary_sessions_until ON temporary_sessions (until);

CREATE INDEX sessions_creator ON sessions (tenant, creator, moved) WHERE NOT erased AND parent = '';

CREATE FUNCTION everturn_is_readable(asked text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    WITH RECURSIVE up(id, parent, creator) AS (
        SELECT s.id, s.parent, s.creator FROM sessions s WHERE s.id = asked AND s.tenant = current_setting('everturn.tenant', true)
        UNION SELECT p.id, p.parent, p.creator FROM up
        JOIN sessions p ON p.id = up.parent AND up.parent != '' AND p.tenant = current_setting('everturn.tenant', true))
    SELECT coalesce(current_setting('everturn.viewer', true), '') = '' OR EXISTS (SELECT 1 FROM up WHERE up.parent = '' AND (
        jsonb_exists(nullif(current_setting('everturn.reader', true), '')::jsonb -> 'creators', up.creator) OR EXISTS (
            SELECT 1 FROM session_shares h WHERE h.session = up.id AND h.kind != 'link' AND h.revoked = 0
            AND (h.expires = 0 OR h.expires > extract(epoch FROM clock_timestamp()))
            AND jsonb_exists(nullif(current_setting('everturn.reader', true), '')::jsonb -> 'subjects', h.subject))))
$$;

DO $$ BEGIN EXECUTE 'ALTER FUNCTION everturn_is_readable(text) SET search_path = ' || quote_ident(current_schema()) || ', pg_temp'; END $$;

REVOKE ALL ON FUNCTION everturn_is_readable(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION everturn_found(asked text, most bigint)
RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    WITH hits AS MATERIALIZED (
        SELECT l.n, l.session, l.message, l.tenant FROM lookup l WHERE l.words @@ asked::tsquery)
    SELECT h.n, h.session, f.body
    FROM (SELECT * FROM hits WHERE hits.tenant = current_setting('everturn.tenant', true) ORDER BY hits.n DESC) h
    CROSS JOIN LATERAL (
        SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session
        WHERE m.session = h.session AND m.id = h.message AND NOT m.is_deleted AND NOT s.erased AND s.tenant = current_setting('everturn.tenant', true)
        AND (coalesce(current_setting('everturn.viewer', true), '') = '' OR (everturn_is_readable(s.id)
            AND NOT EXISTS (SELECT 1 FROM temporary_sessions t WHERE t.session IN (s.id, split_part(s.id, '-', 1)))))
        OFFSET 0) f
    ORDER BY h.n DESC LIMIT most
$$;

DO $$ BEGIN EXECUTE 'ALTER FUNCTION everturn_found(text, bigint) SET search_path = ' || quote_ident(current_schema()) || ', pg_temp'; END $$;

ALTER TABLE session_shares ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON session_shares FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

ALTER TABLE temporary_sessions ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON temporary_sessions FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY private ON sessions AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR (parent = '' AND 'u:' || creator = current_setting('everturn.viewer', true)) OR everturn_is_readable(id));

CREATE POLICY private ON gates AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR everturn_is_readable(session));

CREATE POLICY private ON lookup AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR everturn_is_readable(session));

CREATE POLICY private ON marks AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR everturn_is_readable(session));

CREATE POLICY private ON session_shares AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR everturn_is_readable(session));

CREATE POLICY private ON temporary_sessions AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR everturn_is_readable(session));

CREATE POLICY private ON grants AS RESTRICTIVE FOR SELECT USING (coalesce(current_setting('everturn.viewer', true), '') = '' OR session = '' OR everturn_is_readable(session));

UPDATE everturn_schema SET version_num='0009' WHERE everturn_schema.version_num = '0008';
