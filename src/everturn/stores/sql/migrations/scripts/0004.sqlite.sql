-- Running upgrade 0003 -> 0004

CREATE TABLE turn_snapshots (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    seq BIGINT NOT NULL,
    fold TEXT NOT NULL,
    state BLOB NOT NULL,
    projection BLOB NOT NULL,
    PRIMARY KEY (session, turn)
);

UPDATE everturn_schema SET version_num='0004' WHERE everturn_schema.version_num = '0003';
