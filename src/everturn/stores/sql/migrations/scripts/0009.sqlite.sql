-- Running upgrade 0008 -> 0009

ALTER TABLE sessions ADD COLUMN renamed BOOLEAN DEFAULT 0 NOT NULL;

ALTER TABLE sessions ADD COLUMN pinned BOOLEAN DEFAULT 0 NOT NULL;

ALTER TABLE sessions ADD COLUMN archived BOOLEAN DEFAULT 0 NOT NULL;

ALTER TABLE sessions ADD COLUMN labels TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN organized DOUBLE DEFAULT '0' NOT NULL;

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
    created DOUBLE NOT NULL,
    expires DOUBLE NOT NULL,
    revoked DOUBLE NOT NULL,
    seen DOUBLE NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX session_shares_session ON session_shares (session);

CREATE INDEX session_shares_subject ON session_shares (tenant, subject);

CREATE INDEX session_shares_hash ON session_shares (tenant, hash) WHERE hash != '';

CREATE INDEX session_shares_notice ON session_shares (tenant) WHERE kind = 'admin' AND seen = 0;

CREATE TABLE temporary_sessions (
    session TEXT NOT NULL,
    tenant TEXT NOT NULL,
    until DOUBLE NOT NULL,
    PRIMARY KEY (session)
);

CREATE INDEX temporary_sessions_until ON temporary_sessions (until);

CREATE INDEX sessions_creator ON sessions (tenant, creator, moved) WHERE erased = 0 AND parent = '';

UPDATE everturn_schema SET version_num='0009' WHERE everturn_schema.version_num = '0008';
