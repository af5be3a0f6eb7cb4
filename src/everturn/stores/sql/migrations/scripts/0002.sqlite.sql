-- Running upgrade 0001 -> 0002

ALTER TABLE sessions ADD COLUMN agent TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN who TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN above TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN moved DOUBLE DEFAULT '0' NOT NULL;

UPDATE sessions SET moved = touched;

UPDATE sessions SET above = (SELECT min(u.home) FROM usage u WHERE u.session = sessions.id AND u.top != '') WHERE id IN (SELECT session FROM usage WHERE top != '');

CREATE INDEX sessions_listed ON sessions (tenant, moved) WHERE erased = 0 AND above = '';

CREATE INDEX sessions_below ON sessions (above) WHERE above != '';

ALTER TABLE gates ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

UPDATE gates SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = gates.session), '');

CREATE INDEX gates_tenant ON gates (tenant) WHERE is_open = 1 AND verdict IS NULL AND tenant != '';

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

UPDATE everturn_version SET version_num='0002' WHERE everturn_version.version_num = '0001';
