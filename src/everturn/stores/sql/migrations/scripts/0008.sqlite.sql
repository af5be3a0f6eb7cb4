-- Running upgrade 0007 -> 0008

CREATE TABLE rate_limits (
    "key" TEXT NOT NULL,
    version BIGINT NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY ("key")
);

UPDATE everturn_schema SET version_num='0008' WHERE everturn_schema.version_num = '0007';
