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
    created DOUBLE DEFAULT '0' NOT NULL,
    touched DOUBLE DEFAULT '0' NOT NULL,
    erased BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE inbox (
    n INTEGER NOT NULL,
    session TEXT NOT NULL,
    "key" TEXT NOT NULL,
    turn TEXT DEFAULT '' NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    is_open BOOLEAN DEFAULT 1 NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT inbox_key UNIQUE (session, "key")
);

CREATE INDEX inbox_open ON inbox (session) WHERE is_open;

CREATE INDEX inbox_turn ON inbox (session, turn);

CREATE TABLE events (
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    turn TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE turns (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    started BIGINT NOT NULL,
    last BIGINT DEFAULT '0' NOT NULL,
    state TEXT NOT NULL,
    out INTEGER DEFAULT '0' NOT NULL,
    deadline DOUBLE DEFAULT '0' NOT NULL,
    PRIMARY KEY (session, turn)
);

CREATE INDEX turns_live ON turns (session) WHERE state != 'over' OR out > 0;

CREATE TABLE messages (
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT,
    turn TEXT NOT NULL,
    seq BIGINT NOT NULL,
    body BLOB NOT NULL,
    is_deleted BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (session, id)
);

CREATE INDEX messages_parent ON messages (session, parent);

CREATE INDEX messages_turn ON messages (session, turn);

CREATE TABLE gates (
    session TEXT NOT NULL,
    gate TEXT NOT NULL,
    turn TEXT NOT NULL,
    call TEXT NOT NULL,
    expires DOUBLE DEFAULT '0' NOT NULL,
    opened DOUBLE NOT NULL,
    body BLOB NOT NULL,
    claim BLOB,
    taken TEXT DEFAULT '' NOT NULL,
    resolution BLOB,
    is_open BOOLEAN DEFAULT 1 NOT NULL,
    PRIMARY KEY (session, gate)
);

CREATE INDEX gates_asked ON gates (session) WHERE is_open = 1 AND resolution IS NULL;

CREATE TABLE grants (
    id TEXT NOT NULL,
    origin TEXT NOT NULL,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    created DOUBLE NOT NULL,
    expires DOUBLE DEFAULT '0' NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (id, origin)
);

CREATE INDEX grants_tenant ON grants (tenant, session);

CREATE INDEX grants_origin ON grants (origin);

CREATE TABLE usage (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    tenant TEXT NOT NULL,
    at DOUBLE NOT NULL,
    outcome TEXT NOT NULL,
    input BIGINT DEFAULT '0' NOT NULL,
    output BIGINT DEFAULT '0' NOT NULL,
    cached BIGINT DEFAULT '0' NOT NULL,
    reasoning BIGINT DEFAULT '0' NOT NULL,
    written BIGINT DEFAULT '0' NOT NULL,
    cost DOUBLE,
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
    touched DOUBLE NOT NULL,
    place TEXT NOT NULL,
    data BLOB,
    PRIMARY KEY (name)
);

CREATE TABLE chunks (
    blob TEXT NOT NULL,
    n INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (blob, n)
);

CREATE TABLE mentions (
    blob TEXT NOT NULL,
    session TEXT NOT NULL,
    PRIMARY KEY (blob, session)
);

CREATE INDEX mentions_session ON mentions (session);

CREATE TABLE lookup (
    n INTEGER NOT NULL,
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (n),
    CONSTRAINT lookup_message UNIQUE (session, message)
);

CREATE VIRTUAL TABLE lookup_words USING fts5(
        words, content='lookup', content_rowid='n', detail=none, columnsize=0, tokenize="ascii tokenchars '_'"
    );

CREATE TRIGGER lookup_added AFTER INSERT ON lookup BEGIN
        INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
    END;

CREATE TRIGGER lookup_removed AFTER DELETE ON lookup BEGIN
        INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
    END;

CREATE TRIGGER lookup_changed AFTER UPDATE ON lookup BEGIN
        INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
        INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
    END;

ALTER TABLE sessions ADD COLUMN agent TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN creator TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN parent TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN moved DOUBLE DEFAULT '0' NOT NULL;

UPDATE sessions SET moved = touched;

UPDATE sessions SET parent = (SELECT min(u.home) FROM usage u WHERE u.session = sessions.id AND u.top != '') WHERE id IN (SELECT session FROM usage WHERE top != '');

CREATE INDEX sessions_listed ON sessions (tenant, moved) WHERE erased = 0 AND parent = '';

CREATE INDEX sessions_parent ON sessions (parent) WHERE parent != '';

ALTER TABLE gates ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

UPDATE gates SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = gates.session), '');

CREATE INDEX gates_tenant ON gates (tenant) WHERE is_open = 1 AND resolution IS NULL AND tenant != '';

ALTER TABLE usage ADD COLUMN agent TEXT DEFAULT '' NOT NULL;

CREATE TABLE tenants (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    created DOUBLE NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE users (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    created DOUBLE NOT NULL,
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
    created DOUBLE NOT NULL,
    expires DOUBLE NOT NULL,
    revoked DOUBLE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT credentials_hash UNIQUE (hash)
);

CREATE INDEX credentials_tenant ON credentials (tenant, whose);

CREATE TABLE secrets (
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE audit (
    tenant TEXT NOT NULL,
    n BIGINT NOT NULL,
    at DOUBLE NOT NULL,
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
    at DOUBLE NOT NULL,
    PRIMARY KEY (tenant, hash)
);

CREATE INDEX marks_age ON marks (tenant, at);

CREATE INDEX marks_session ON marks (session);

CREATE TRIGGER audit_is_kept_update BEFORE UPDATE ON audit BEGIN
        SELECT RAISE(ABORT, 'the audit log is only ever added to');
    END;

CREATE TRIGGER audit_is_kept_delete BEFORE DELETE ON audit BEGIN
        SELECT RAISE(ABORT, 'the audit log is only ever added to');
    END;

ALTER TABLE lookup ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

DROP TRIGGER lookup_changed;

UPDATE lookup SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = lookup.session), '');

CREATE TRIGGER lookup_changed AFTER UPDATE OF words ON lookup BEGIN
    INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
    INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
END;

CREATE INDEX lookup_tenant ON lookup (tenant, n);

DROP INDEX gates_tenant;

CREATE INDEX gates_tenant ON gates (tenant, opened) WHERE is_open = 1 AND resolution IS NULL AND tenant != '';

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
    cost DOUBLE DEFAULT '0' NOT NULL,
    priced BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (tenant, day, agent, part)
);

INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) SELECT tenant, CAST(usage.at / 86400 AS INTEGER), agent, 0, sum(steps), sum(calls), sum(input), sum(output), sum(cached), sum(reasoning), sum(written),
    coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3;

CREATE TRIGGER usage_counted AFTER INSERT ON usage WHEN new.steps != 0 OR new.calls != 0 OR new.input != 0 OR new.output != 0 OR new.cached != 0 OR new.reasoning != 0 OR new.written != 0 OR new.cost IS NOT NULL BEGIN
        INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, CAST(new.at / 86400 AS INTEGER), new.agent, 0, new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, coalesce(new.cost, 0), (new.cost IS NOT NULL)) ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = usage_days.steps + excluded.steps, calls = usage_days.calls + excluded.calls, input = usage_days.input + excluded.input, output = usage_days.output + excluded.output, cached = usage_days.cached + excluded.cached, reasoning = usage_days.reasoning + excluded.reasoning, written = usage_days.written + excluded.written, cost = usage_days.cost + excluded.cost, priced = usage_days.priced + excluded.priced;
    END;

CREATE TRIGGER usage_recounted AFTER UPDATE ON usage BEGIN
        INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (old.tenant, CAST(old.at / 86400 AS INTEGER), old.agent, 0, -old.steps, -old.calls, -old.input, -old.output, -old.cached, -old.reasoning, -old.written, -coalesce(old.cost, 0), -(old.cost IS NOT NULL)) ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = usage_days.steps + excluded.steps, calls = usage_days.calls + excluded.calls, input = usage_days.input + excluded.input, output = usage_days.output + excluded.output, cached = usage_days.cached + excluded.cached, reasoning = usage_days.reasoning + excluded.reasoning, written = usage_days.written + excluded.written, cost = usage_days.cost + excluded.cost, priced = usage_days.priced + excluded.priced;
        INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, CAST(new.at / 86400 AS INTEGER), new.agent, 0, new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, coalesce(new.cost, 0), (new.cost IS NOT NULL)) ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = usage_days.steps + excluded.steps, calls = usage_days.calls + excluded.calls, input = usage_days.input + excluded.input, output = usage_days.output + excluded.output, cached = usage_days.cached + excluded.cached, reasoning = usage_days.reasoning + excluded.reasoning, written = usage_days.written + excluded.written, cost = usage_days.cost + excluded.cost, priced = usage_days.priced + excluded.priced;
    END;

INSERT INTO everturn_schema (version_num) VALUES ('0001') RETURNING version_num;
