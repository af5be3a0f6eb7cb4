CREATE TABLE everturn_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT everturn_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE sessions (
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    head BIGINT DEFAULT '0' NOT NULL,
    epoch BIGINT DEFAULT '0' NOT NULL,
    token TEXT DEFAULT '' NOT NULL,
    tries INTEGER DEFAULT '0' NOT NULL,
    stuck TEXT DEFAULT '' NOT NULL,
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
    verdict BLOB,
    is_open BOOLEAN DEFAULT 1 NOT NULL,
    PRIMARY KEY (session, gate)
);

CREATE INDEX gates_asked ON gates (session) WHERE is_open = 1 AND verdict IS NULL;

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

INSERT INTO everturn_version (version_num) VALUES ('0001') RETURNING version_num;
