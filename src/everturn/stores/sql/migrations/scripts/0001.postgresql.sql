CREATE TABLE everturn_schema (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT everturn_schema_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE sessions (
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    head BIGINT DEFAULT '0' NOT NULL,
    epoch BIGINT DEFAULT '0' NOT NULL,
    token TEXT DEFAULT '' NOT NULL,
    tries INTEGER DEFAULT '0' NOT NULL,
    quarantined TEXT DEFAULT '' NOT NULL,
    title TEXT DEFAULT '' NOT NULL,
    leaf TEXT,
    created DOUBLE PRECISION DEFAULT '0' NOT NULL,
    touched DOUBLE PRECISION DEFAULT '0' NOT NULL,
    erased BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE inbox (
    n BIGSERIAL NOT NULL,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    turn TEXT DEFAULT '' NOT NULL,
    kind TEXT NOT NULL,
    body BYTEA NOT NULL,
    is_open BOOLEAN DEFAULT true NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT inbox_key UNIQUE (session, key)
);

CREATE INDEX inbox_open ON inbox (session) WHERE is_open;

CREATE INDEX inbox_turn ON inbox (session, turn);

CREATE TABLE events (
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    turn TEXT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE turns (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    started BIGINT NOT NULL,
    last BIGINT DEFAULT '0' NOT NULL,
    state TEXT NOT NULL,
    out INTEGER DEFAULT '0' NOT NULL,
    deadline DOUBLE PRECISION DEFAULT '0' NOT NULL,
    PRIMARY KEY (session, turn)
);

CREATE INDEX turns_live ON turns (session) WHERE state != 'over' OR out > 0;

CREATE TABLE messages (
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT,
    turn TEXT NOT NULL,
    seq BIGINT NOT NULL,
    body BYTEA NOT NULL,
    is_deleted BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (session, id)
);

CREATE INDEX messages_parent ON messages (session, parent);

CREATE INDEX messages_turn ON messages (session, turn);

CREATE TABLE gates (
    session TEXT NOT NULL,
    gate TEXT NOT NULL,
    turn TEXT NOT NULL,
    call TEXT NOT NULL,
    expires DOUBLE PRECISION DEFAULT '0' NOT NULL,
    opened DOUBLE PRECISION NOT NULL,
    body BYTEA NOT NULL,
    claim BYTEA,
    taken TEXT DEFAULT '' NOT NULL,
    resolution BYTEA,
    is_open BOOLEAN DEFAULT true NOT NULL,
    PRIMARY KEY (session, gate)
);

CREATE INDEX gates_asked ON gates (session) WHERE is_open AND resolution IS NULL;

CREATE TABLE grants (
    id TEXT NOT NULL,
    origin TEXT NOT NULL,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION DEFAULT '0' NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (id, origin)
);

CREATE INDEX grants_tenant ON grants (tenant, session);

CREATE INDEX grants_origin ON grants (origin);

CREATE TABLE usage (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    tenant TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    outcome TEXT NOT NULL,
    input BIGINT DEFAULT '0' NOT NULL,
    output BIGINT DEFAULT '0' NOT NULL,
    cached BIGINT DEFAULT '0' NOT NULL,
    reasoning BIGINT DEFAULT '0' NOT NULL,
    written BIGINT DEFAULT '0' NOT NULL,
    cost DOUBLE PRECISION,
    steps INTEGER DEFAULT '0' NOT NULL,
    calls INTEGER DEFAULT '0' NOT NULL,
    top TEXT DEFAULT '' NOT NULL,
    home TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (session, turn)
);

CREATE INDEX usage_tenant ON usage (tenant, at);

CREATE INDEX usage_home ON usage (home);

CREATE INDEX usage_top ON usage (top) WHERE top != '';

CREATE TABLE files (
    session TEXT NOT NULL,
    root TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (session, root)
);

CREATE TABLE blobs (
    name TEXT NOT NULL,
    size BIGINT NOT NULL,
    touched DOUBLE PRECISION NOT NULL,
    place TEXT NOT NULL,
    data BYTEA,
    PRIMARY KEY (name)
);

CREATE TABLE chunks (
    blob TEXT NOT NULL,
    n INTEGER NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (blob, n)
);

CREATE TABLE mentions (
    blob TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (blob, session)
);

CREATE INDEX mentions_session ON mentions (session);

CREATE TABLE lookup (
    n BIGSERIAL NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT lookup_message UNIQUE (session, message)
);

CREATE INDEX lookup_words ON lookup USING gin (words);

ALTER TABLE sessions ADD COLUMN agent TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN creator TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN parent TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN moved DOUBLE PRECISION DEFAULT '0' NOT NULL;

UPDATE sessions SET moved = touched;

UPDATE sessions SET parent = (SELECT min(u.home) FROM usage u WHERE u.session = sessions.id AND u.top != '') WHERE id IN (SELECT session FROM usage WHERE top != '');

CREATE INDEX sessions_listed ON sessions (tenant, moved) WHERE NOT erased AND parent = '';

CREATE INDEX sessions_parent ON sessions (parent) WHERE parent != '';

ALTER TABLE gates ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

UPDATE gates SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = gates.session), '');

CREATE INDEX gates_tenant ON gates (tenant) WHERE is_open AND resolution IS NULL AND tenant != '';

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

ALTER TABLE lookup ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

DROP INDEX lookup_words;

UPDATE lookup SET tenant = s.tenant, words = array_to_tsvector(ARRAY(
    SELECT left(md5(s.tenant), 8) || w.word FROM unnest(tsvector_to_array(lookup.words)) AS w (word)))
FROM sessions s WHERE s.id = lookup.session;

CREATE INDEX lookup_words ON lookup USING gin (words);

DROP POLICY wall ON lookup;

CREATE POLICY wall ON lookup FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

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
        OFFSET 0) f
    ORDER BY h.n DESC LIMIT most
$$;

DO $$ BEGIN
    EXECUTE 'ALTER FUNCTION everturn_found(text, bigint) SET search_path = '
        || quote_ident(current_schema()) || ', pg_temp';
END $$;

CREATE INDEX lookup_tenant ON lookup (tenant, n);

DROP INDEX gates_tenant;

CREATE INDEX gates_tenant ON gates (tenant, opened) WHERE is_open AND resolution IS NULL AND tenant != '';

CREATE INDEX sessions_quarantined ON sessions (id) WHERE quarantined != '';

CREATE TABLE usage_days (
    tenant TEXT NOT NULL,
    day BIGINT NOT NULL,
    agent TEXT NOT NULL,
    part INTEGER NOT NULL,
    steps BIGINT DEFAULT '0' NOT NULL,
    calls BIGINT DEFAULT '0' NOT NULL,
    input BIGINT DEFAULT '0' NOT NULL,
    output BIGINT DEFAULT '0' NOT NULL,
    cached BIGINT DEFAULT '0' NOT NULL,
    reasoning BIGINT DEFAULT '0' NOT NULL,
    written BIGINT DEFAULT '0' NOT NULL,
    cost DOUBLE PRECISION DEFAULT '0' NOT NULL,
    priced BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (tenant, day, agent, part)
);

INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) SELECT tenant, floor(least(greatest(at, 0), 1e15) / 86400)::bigint, agent, 0, sum(steps), sum(calls), sum(input), sum(output), sum(cached), sum(reasoning), sum(written),
    coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3;

CREATE FUNCTION everturn_count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mine integer := mod(pg_backend_pid(), 1024);
    today bigint := floor(least(greatest(new.at, 0), 1e15) / 86400)::bigint;
BEGIN
    IF TG_OP = 'UPDATE' AND floor(least(greatest(old.at, 0), 1e15) / 86400)::bigint = today THEN
        IF (old.steps, old.calls, old.input, old.output, old.cached, old.reasoning, old.written, old.cost)
            IS NOT DISTINCT FROM
            (new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, new.cost) THEN
            RETURN NULL;
        END IF;
        INSERT INTO usage_days AS d (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, today, new.agent, mine, new.steps - old.steps, new.calls - old.calls, new.input - old.input, new.output - old.output, new.cached - old.cached, new.reasoning - old.reasoning, new.written - old.written,
            coalesce(new.cost, 0) - coalesce(old.cost, 0), (new.cost IS NOT NULL)::int - (old.cost IS NOT NULL)::int)
        ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = d.steps + excluded.steps, calls = d.calls + excluded.calls, input = d.input + excluded.input, output = d.output + excluded.output, cached = d.cached + excluded.cached, reasoning = d.reasoning + excluded.reasoning, written = d.written + excluded.written, cost = d.cost + excluded.cost, priced = d.priced + excluded.priced;
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO usage_days AS d (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (old.tenant, floor(least(greatest(old.at, 0), 1e15) / 86400)::bigint, old.agent, mine, -old.steps, -old.calls, -old.input, -old.output, -old.cached, -old.reasoning, -old.written,
            -coalesce(old.cost, 0), -(old.cost IS NOT NULL)::int)
        ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = d.steps + excluded.steps, calls = d.calls + excluded.calls, input = d.input + excluded.input, output = d.output + excluded.output, cached = d.cached + excluded.cached, reasoning = d.reasoning + excluded.reasoning, written = d.written + excluded.written, cost = d.cost + excluded.cost, priced = d.priced + excluded.priced;
    END IF;
    IF new.steps != 0 OR new.calls != 0 OR new.input != 0 OR new.output != 0 OR new.cached != 0 OR new.reasoning != 0 OR new.written != 0 OR new.cost IS NOT NULL THEN
        INSERT INTO usage_days AS d (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, today, new.agent, mine, new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written,
            coalesce(new.cost, 0), (new.cost IS NOT NULL)::int)
        ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = d.steps + excluded.steps, calls = d.calls + excluded.calls, input = d.input + excluded.input, output = d.output + excluded.output, cached = d.cached + excluded.cached, reasoning = d.reasoning + excluded.reasoning, written = d.written + excluded.written, cost = d.cost + excluded.cost, priced = d.priced + excluded.priced;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER usage_counted AFTER INSERT OR UPDATE ON usage FOR EACH ROW EXECUTE FUNCTION everturn_count_usage();

ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON usage_days FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

INSERT INTO everturn_schema (version_num) VALUES ('0001') RETURNING everturn_schema.version_num;
