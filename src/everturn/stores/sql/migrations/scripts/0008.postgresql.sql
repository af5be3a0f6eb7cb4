-- Running upgrade 0007 -> 0008

CREATE TABLE rate_limits (
    key TEXT NOT NULL,
    version BIGINT NOT NULL,
    state BYTEA NOT NULL,
    PRIMARY KEY (key)
);

ALTER TABLE rate_limits SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

ALTER TABLE rate_limits ENABLE ROW LEVEL SECURITY;

UPDATE everturn_schema SET version_num='0008' WHERE everturn_schema.version_num = '0007';
