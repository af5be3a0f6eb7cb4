-- Running upgrade 0005 -> 0006

CREATE TABLE wakes (
    session TEXT NOT NULL,
    due TIMESTAMP WITH TIME ZONE,
    later TIMESTAMP WITH TIME ZONE,
    worker BIGINT,
    tries INTEGER DEFAULT '0' NOT NULL,
    PRIMARY KEY (session)
);

CREATE INDEX wakes_due ON wakes (due) WHERE worker IS NULL;

CREATE INDEX wakes_worker ON wakes (worker) WHERE worker IS NOT NULL;

CREATE TABLE engine_workers (
    id BIGSERIAL NOT NULL,
    backend INTEGER NOT NULL,
    expires TIMESTAMP WITH TIME ZONE NOT NULL,
    missing_since TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);

ALTER TABLE wakes SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

ALTER TABLE wakes ENABLE ROW LEVEL SECURITY;

ALTER TABLE engine_workers ENABLE ROW LEVEL SECURITY;

UPDATE everturn_schema SET version_num='0006' WHERE everturn_schema.version_num = '0005';
