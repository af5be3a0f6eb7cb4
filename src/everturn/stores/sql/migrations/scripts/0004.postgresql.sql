-- Running upgrade 0003 -> 0004

CREATE TABLE turn_snapshots (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    seq BIGINT NOT NULL,
    fold TEXT NOT NULL,
    state BYTEA NOT NULL,
    projection BYTEA NOT NULL,
    PRIMARY KEY (session, turn)
);

ALTER TABLE turn_snapshots ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON turn_snapshots FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = turn_snapshots.session) = current_setting('everturn.tenant', true));

UPDATE everturn_schema SET version_num='0004' WHERE everturn_schema.version_num = '0003';
