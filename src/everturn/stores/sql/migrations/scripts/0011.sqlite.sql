-- Running upgrade 0010 -> 0011

CREATE TABLE user_records (
    tenant TEXT NOT NULL,
    whose TEXT NOT NULL,
    password TEXT DEFAULT '' NOT NULL,
    changed DOUBLE DEFAULT '0' NOT NULL,
    budget TEXT DEFAULT '' NOT NULL,
    removed DOUBLE DEFAULT '0' NOT NULL,
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
    created DOUBLE NOT NULL,
    expires DOUBLE NOT NULL,
    used DOUBLE NOT NULL,
    revoked DOUBLE NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX invitations_hash ON invitations (hash);

ALTER TABLE credentials ADD COLUMN used DOUBLE DEFAULT '0' NOT NULL;

ALTER TABLE usage ADD COLUMN who TEXT DEFAULT '' NOT NULL;

ALTER TABLE usage ADD COLUMN model TEXT DEFAULT '' NOT NULL;

CREATE INDEX usage_who ON usage (tenant, who, at) WHERE who != '';

UPDATE everturn_schema SET version_num='0011' WHERE everturn_schema.version_num = '0010';
