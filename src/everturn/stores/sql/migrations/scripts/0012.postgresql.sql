-- Running upgrade 0011 -> 0012

CREATE TABLE settings (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    body BYTEA NOT NULL,
    secret BYTEA NOT NULL,
    is_deleted BOOLEAN NOT NULL,
    author TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, kind, name, version)
);

ALTER TABLE settings ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON settings FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

UPDATE everturn_schema SET version_num='0012' WHERE everturn_schema.version_num = '0011';
