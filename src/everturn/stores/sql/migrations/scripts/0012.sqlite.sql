-- Running upgrade 0011 -> 0012

CREATE TABLE settings (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    body BLOB NOT NULL,
    secret BLOB NOT NULL,
    is_deleted BOOLEAN NOT NULL,
    author TEXT NOT NULL,
    at DOUBLE NOT NULL,
    PRIMARY KEY (tenant, kind, name, version)
);

UPDATE everturn_schema SET version_num='0012' WHERE everturn_schema.version_num = '0011';
