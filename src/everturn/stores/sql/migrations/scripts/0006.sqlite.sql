-- Running upgrade 0005 -> 0006

CREATE TABLE wakes (
    session TEXT NOT NULL,
    due DATETIME,
    later DATETIME,
    worker BIGINT,
    tries INTEGER DEFAULT '0' NOT NULL,
    PRIMARY KEY (session)
);

CREATE INDEX wakes_due ON wakes (due) WHERE worker IS NULL;

CREATE INDEX wakes_worker ON wakes (worker) WHERE worker IS NOT NULL;

CREATE TABLE engine_workers (
    id INTEGER NOT NULL,
    backend INTEGER NOT NULL,
    expires DATETIME NOT NULL,
    missing_since DATETIME,
    PRIMARY KEY (id)
);

UPDATE everturn_schema SET version_num='0006' WHERE everturn_schema.version_num = '0005';
