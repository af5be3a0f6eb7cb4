-- Running upgrade 0004 -> 0005

CREATE TABLE memory_files (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    path TEXT NOT NULL,
    size BIGINT NOT NULL,
    hash TEXT NOT NULL,
    updated DOUBLE PRECISION NOT NULL,
    untrusted BOOLEAN NOT NULL,
    sensitive BOOLEAN NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, path)
);

CREATE TABLE memory_writes (
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    receipt BYTEA NOT NULL,
    PRIMARY KEY (session, key)
);

ALTER TABLE memory_files ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON memory_files FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

ALTER TABLE memory_writes ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON memory_writes FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

UPDATE everturn_schema SET version_num='0005' WHERE everturn_schema.version_num = '0004';
