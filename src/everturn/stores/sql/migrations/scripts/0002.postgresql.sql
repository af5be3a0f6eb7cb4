-- Running upgrade 0001 -> 0002

ALTER TABLE sessions ADD COLUMN agent TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN who TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN above TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN moved DOUBLE PRECISION DEFAULT '0' NOT NULL;

UPDATE sessions SET moved = touched;

UPDATE sessions SET above = (SELECT min(u.home) FROM usage u WHERE u.session = sessions.id AND u.top != '') WHERE id IN (SELECT session FROM usage WHERE top != '');

CREATE INDEX sessions_listed ON sessions (tenant, moved) WHERE NOT erased AND above = '';

CREATE INDEX sessions_below ON sessions (above) WHERE above != '';

ALTER TABLE gates ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

UPDATE gates SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = gates.session), '');

CREATE INDEX gates_tenant ON gates (tenant) WHERE is_open AND verdict IS NULL AND tenant != '';

ALTER TABLE usage ADD COLUMN agent TEXT DEFAULT '' NOT NULL;

CREATE TABLE tenants (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE users (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    origin TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE credentials (
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    whose TEXT NOT NULL,
    kind TEXT NOT NULL,
    hash TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    revoked DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT credentials_hash UNIQUE (hash)
);

CREATE INDEX credentials_tenant ON credentials (tenant, whose);

CREATE TABLE secrets (
    name TEXT NOT NULL,
    value BYTEA NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE audit (
    tenant TEXT NOT NULL,
    n BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    who TEXT NOT NULL,
    credential TEXT NOT NULL,
    did TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (tenant, n)
);

CREATE TABLE marks (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, hash)
);

CREATE INDEX marks_age ON marks (tenant, at);

CREATE INDEX marks_session ON marks (session);

CREATE FUNCTION everturn_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END $$;

CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION everturn_keep_audit();

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;

ALTER TABLE gates ENABLE ROW LEVEL SECURITY;

ALTER TABLE grants ENABLE ROW LEVEL SECURITY;

ALTER TABLE usage ENABLE ROW LEVEL SECURITY;

ALTER TABLE users ENABLE ROW LEVEL SECURITY;

ALTER TABLE credentials ENABLE ROW LEVEL SECURITY;

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;

ALTER TABLE marks ENABLE ROW LEVEL SECURITY;

ALTER TABLE inbox ENABLE ROW LEVEL SECURITY;

ALTER TABLE events ENABLE ROW LEVEL SECURITY;

ALTER TABLE turns ENABLE ROW LEVEL SECURITY;

ALTER TABLE messages ENABLE ROW LEVEL SECURITY;

ALTER TABLE files ENABLE ROW LEVEL SECURITY;

ALTER TABLE mentions ENABLE ROW LEVEL SECURITY;

ALTER TABLE lookup ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;

ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON sessions FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON gates FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON grants FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON usage FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON users FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON credentials FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON audit FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON marks FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE POLICY wall ON inbox FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = inbox.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON events FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = events.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON turns FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = turns.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON messages FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = messages.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON files FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = files.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON mentions FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = mentions.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON lookup FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = lookup.session) = current_setting('everturn.tenant', true));

CREATE POLICY wall ON tenants FOR SELECT USING (id = current_setting('everturn.tenant', true));

CREATE FUNCTION everturn_found(asked text, most bigint) RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT l.n, l.session, m.body FROM lookup l
    JOIN messages m ON m.session = l.session AND m.id = l.message JOIN sessions s ON s.id = l.session
    WHERE l.words @@ asked::tsquery AND NOT m.is_deleted AND NOT s.erased AND s.tenant = current_setting('everturn.tenant', true)
    ORDER BY l.n DESC LIMIT most
$$;

DO $$ BEGIN
    EXECUTE 'ALTER FUNCTION everturn_found(text, bigint) SET search_path = '
        || quote_ident(current_schema()) || ', pg_temp';
END $$;

REVOKE ALL ON FUNCTION everturn_found(text, bigint) FROM PUBLIC;

UPDATE everturn_version SET version_num='0002' WHERE everturn_version.version_num = '0001';
