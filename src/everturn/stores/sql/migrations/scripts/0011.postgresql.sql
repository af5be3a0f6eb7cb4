-- Running upgrade 0010 -> 0011

CREATE TABLE user_records (
    tenant TEXT NOT NULL,
    whose TEXT NOT NULL,
    password TEXT DEFAULT '' NOT NULL,
    changed DOUBLE PRECISION DEFAULT '0' NOT NULL,
    budget TEXT DEFAULT '' NOT NULL,
    removed DOUBLE PRECISION DEFAULT '0' NOT NULL,
    PRIMARY KEY (tenant, whose)
);

CREATE TABLE invitations (
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    whose TEXT NOT NULL,
    hash TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    creator TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION NOT NULL,
    revoked DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX invitations_hash ON invitations (hash);

ALTER TABLE credentials ADD COLUMN used DOUBLE PRECISION DEFAULT '0' NOT NULL;

ALTER TABLE usage ADD COLUMN who TEXT DEFAULT '' NOT NULL;

ALTER TABLE usage ADD COLUMN model TEXT DEFAULT '' NOT NULL;

CREATE INDEX usage_who ON usage (tenant, who, at) WHERE who != '';

ALTER TABLE user_records ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON user_records FOR SELECT USING (tenant = current_setting('everturn.tenant', true) AND coalesce(current_setting('everturn.viewer', true), '') = '');

ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON invitations FOR SELECT USING (tenant = current_setting('everturn.tenant', true) AND coalesce(current_setting('everturn.viewer', true), '') = '');

UPDATE everturn_schema SET version_num='0011' WHERE everturn_schema.version_num = '0010';
